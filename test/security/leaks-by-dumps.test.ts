/**
 * Memory that gets out. A process that holds signing keys and passwords writes all of them to a file when it crashes
 * (a core dump), or when a fault is diagnosed (a report with the environment, a heap snapshot on a signal), and gives
 * them to anyone who connects after SIGUSR1, with which Node opens its debugger on the loopback, which all containers
 * of a pod share. None of that is needed in production, so it is switched off before any secret is read; there is a
 * warning about whatever cannot be switched off.
 */
import { readdir, readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { startChild } from "../support/child.ts";
import { startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { ask } from "../support/ask.ts";
import { until } from "../support/until.ts";

const TARGET = "http://127.0.0.1:1";
/** Port 0, so that a debugger that opens after all does not collide with another one. */
const SWITCHES =
  "--inspect-port=0 --heapsnapshot-signal=SIGUSR2 --report-on-signal --report-signal=SIGHUP";

/** What Node writes by default: the control for the tests below. */
const PLAIN = 'process.stdout.write("up\\n"); setInterval(() => undefined, 1000);';

/** Returns the files that Node was made to write here. */
async function inDirectory(directory: string) {
  const names = await readdir(directory);
  return names.filter((name) => /heapsnapshot|report|core/.test(name));
}

describe("signals", () => {
  it("open, write and end nothing in Sallyport", async () => {
    await using directory = await temporaryDirectory();
    const NODE_OPTIONS = `${SWITCHES} --diagnostic-dir=${directory.path} --report-dir=${directory.path}`;
    await using gate = await startSallyport({ target: TARGET, env: { NODE_OPTIONS }, flags: [] });
    for (const signal of ["SIGUSR1", "SIGUSR2"] as const) gate.signal(signal);
    // The debugger reports itself on standard error, and a snapshot blocks the event loop.
    for (let turn = 0; turn < 20; turn += 1) {
      expect((await ask(gate, "/api/version", { token: gate.token })).status).toBe(200);
    }
    expect(await gate.stop()).toBe(0);
    expect(gate.stderr()).toBe("");
    expect(await inDirectory(directory.path)).toEqual([]);
  });

  it("do all that in Node by default", async () => {
    await using directory = await temporaryDirectory();
    const script = await directory.write("plain.mjs", PLAIN);
    const NODE_OPTIONS = `${SWITCHES} --diagnostic-dir=${directory.path} --report-dir=${directory.path}`;
    const child = startChild(script, [], { NODE_OPTIONS });
    await child.line((line) => (line === "up" ? true : undefined));
    child.signal("SIGUSR1");
    await until(() => child.stderr().includes("Debugger listening"));
    child.signal("SIGUSR2");
    await until(async () => (await inDirectory(directory.path)).length === 1);
    await child.kill();
  });
});

describe.runIf(process.platform === "linux")("a core dump", () => {
  it("contains no memory, whatever the limit is", async () => {
    await using gate = await startSallyport({ target: TARGET });
    expect(await readFile(`/proc/${gate.pid}/coredump_filter`, "latin1")).toBe("00000000\n");
    // The shells' default would be 33: private memory.
    expect(await readFile("/proc/self/coredump_filter", "latin1")).not.toBe("00000000\n");
    // So there is nothing to warn of.
    expect(gate.log().filter(({ by }) => by !== undefined)).toEqual([]);
  });
});

describe("settings that a process cannot switch off", () => {
  it("cause a warning at start, without values", async () => {
    await using directory = await temporaryDirectory();
    await using gate = await startSallyport({
      target: TARGET,
      env: { NODE_OPTIONS: `--tls-keylog=${directory.path}/keys`, NODE_DEBUG: "no-such-part" },
    });
    const [told] = gate.log().filter(({ by }) => by !== undefined);
    expect([told?.["level"], told?.["by"]]).toEqual(["warn", ["--tls-keylog", "NODE_DEBUG"]]);
    expect(JSON.stringify(told)).not.toContain(directory.path);
  });
});
