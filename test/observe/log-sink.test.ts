import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { open, readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { createLogSink } from "../../src/observe/log/log-sink.ts";
import { linkTo } from "../deploy/runbook-entries.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

async function fileSink(format: "json" | "pretty" | "auto" = "json") {
  const directory = await temporaryDirectory();
  const path = await directory.write("log", "");
  const file = await open(path, "a");
  return {
    sink: createLogSink({ fd: file.fd, format }),
    read: () => readFile(path, "utf8"),
    async [Symbol.asyncDispose]() {
      await file.close();
      await directory.close();
    },
  };
}

test("lines arrive soon and in order without a flush", async () => {
  await using log = await fileSink();
  log.sink.write('{"a":1}');
  log.sink.write('{"b":"ü"}');
  await until(async () => (await log.read()) !== "");
  expect(await log.read()).toBe('{"a":1}\n{"b":"ü"}\n');
});

test("many lines arrive complete and in order", async () => {
  await using log = await fileSink();
  const lines = Array.from({ length: 20_000 }, (_, i) => `{"line":${i}}`);
  for (const line of lines) log.sink.write(line);
  await log.sink.drain(5000);
  expect(await log.read()).toBe(`${lines.join("\n")}\n`);
});

test("everything is written when flush returns", async () => {
  await using log = await fileSink();
  log.sink.write('{"last":true}');
  log.sink.flush();
  log.sink.flush();
  expect(await log.read()).toBe('{"last":true}\n');
});

test("a file is not a terminal: auto writes JSON to it, pretty does not", async () => {
  const line = '{"level":"info","time":"2026-11-03T12:00:01.123Z","msg":"up"}';
  await using json = await fileSink("auto");
  await using pretty = await fileSink("pretty");
  for (const { sink } of [json, pretty]) {
    sink.write(line);
    sink.flush();
  }
  expect(await json.read()).toBe(`${line}\n`);
  expect(await pretty.read()).toBe("12:00:01.123 INFO  up\n");
});

const SINK = pathToFileURL(resolve("src/observe/log/log-sink.ts")).href;

/** Starts a program with a sink on its standard output, which is not read until the test does so. */
function program(maxWaiting: number, body: string) {
  const code = `
    import { createLogSink } from ${JSON.stringify(SINK)};
    const sink = createLogSink({ format: "json", maxWaiting: ${maxWaiting} });
    const say = (word) => process.stderr.write(word + "\\n");
    ${body}`;
  return spawn(process.execPath, ["--input-type=module", "--eval", code], {
    stdio: ["ignore", "pipe", "pipe"],
  });
}

const FLOOD = `
  const line = JSON.stringify({ filler: "x".repeat(500) });
  for (let i = 0; i < 20_000; i++) sink.write(line);`;

test("a stalled reader delays neither the program nor its exit", async () => {
  const child = program(
    8 << 20,
    `${FLOOD} say("written"); await sink.drain(50); sink.flush(); process.exit(7);`,
  );
  const said = text(child.stderr);
  const [code] = await once(child, "exit");
  expect(code).toBe(7);
  expect(await said).toBe("written\n");
});

test("lines that a slow reader does not take are dropped, counted and reported", async () => {
  const child = program(
    256 << 10,
    `${FLOOD} say(String(sink.dropped())); await sink.drain(10_000); say(String(sink.dropped()));`,
  );
  const said = text(child.stderr);
  await once(child.stderr, "data");
  const lines = (await text(child.stdout)).trimEnd().split("\n");
  const told = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const notices = told.filter(({ dropped }) => dropped !== undefined);
  expect(notices).toMatchObject([{ level: "warn", see: linkTo("log lines were dropped") }]);
  const dropped = 20_000 - (lines.length - 1);
  expect(dropped).toBeGreaterThan(0);
  expect(notices[0]).toMatchObject({ dropped });
  // Before it is reported, and after.
  expect(await said).toBe(`${dropped}\n${dropped}\n`);
});

test("a closed reader does not end the program, and lost lines are counted", async () => {
  const child = program(
    8 << 20,
    `process.once("SIGUSR2", async () => {
       ${FLOOD} await sink.drain(5000); sink.write(line); sink.flush();
       say(String(sink.dropped())); process.exit(0);
     });
     setInterval(() => {}, 1000); sink.write("first");`,
  );
  const said = text(child.stderr);
  await once(child.stdout, "data");
  child.stdout.destroy();
  await once(child.stdout, "close");
  child.kill("SIGUSR2");
  const [code] = await once(child, "exit");
  expect(code).toBe(0);
  expect(await said).toBe("20001\n");
});

test("lines lost on a full disk are reported once there is space again", async () => {
  // The program replaces the full disk by a file, under the same descriptor.
  await using directory = await temporaryDirectory();
  const path = await directory.write("log", "");
  const child = program(
    8 << 20,
    `import { closeSync, openSync } from "node:fs";
     const full = openSync("/dev/full", "w");
     const log = createLogSink({ fd: full, format: "json" });
     for (let i = 0; i < 100; i++) log.write("{}");
     // The line that reports it is lost, too, but is not counted.
     for (let i = 0; i < 3; i++) log.flush();
     say(String(log.dropped()));
     closeSync(full);
     const file = openSync(${JSON.stringify(path)}, "a");
     await log.drain(5000);
     say(String(log.dropped())); say(String(file === full)); process.exit(0);`,
  );
  const said = text(child.stderr);
  const [code] = await once(child, "exit");
  expect([code, await said]).toEqual([0, "100\n100\ntrue\n"]);
  expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ level: "warn", dropped: 100 });
});

/** Whether the size of files can be limited here, and the limit raised while the program runs. */
const canLimit =
  spawnSync("bash", ["-c", "ulimit -S -f 8 && prlimit --pid $$ --fsize"]).status === 0;

test.runIf(canLimit)(
  "a disk that is full, and has room for a few bytes now and then, gets whole lines and a report a second",
  async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("log", "");
    const code = `
      import { execFileSync } from "node:child_process";
      import { openSync, statSync } from "node:fs";
      import { setTimeout as pause } from "node:timers/promises";
      import { createLogSink } from ${JSON.stringify(SINK)};
      const path = ${JSON.stringify(path)};
      const log = createLogSink({ fd: openSync(path, "a"), format: "json" });
      const limit = (bytes) => execFileSync("prlimit", ["--pid", String(process.pid), "--fsize=" + bytes + ":"]);
      let count = 0;
      const lines = (many) => {
        for (let i = 0; i < many; i++) log.write(JSON.stringify({ count: count++, filler: "x".repeat(280) }));
      };
      const began = performance.now();
      lines(40);
      await pause(60);
      // Each step has room for the report, but not for a line.
      for (let step = 0; step < 30; step++) {
        limit(statSync(path).size + 200);
        lines(2);
        await pause(25);
      }
      const fullMs = performance.now() - began;
      limit("unlimited");
      lines(3);
      await log.drain(5000);
      process.stdout.write(JSON.stringify({ count, fullMs, dropped: log.dropped() }));`;
    const program = ["--input-type=module", "--eval", code];
    const limited = ["-c", 'ulimit -S -f 8 && exec "$0" "$@"', process.execPath, ...program];
    const child = spawn("bash", limited, { stdio: ["ignore", "pipe", "inherit"] });
    const told: { count: number; fullMs: number; dropped: number } = JSON.parse(
      await text(child.stdout),
    );
    const written = (await readFile(path, "utf8")).trimEnd().split("\n");
    const all = written.map((line): { count?: number; dropped?: number } => JSON.parse(line));
    const counts = all.flatMap(({ count }) => count ?? []);
    const reports = all.flatMap(({ dropped }) => dropped ?? []);
    expect(counts).toEqual([...new Set(counts)].toSorted((a, b) => a - b));
    // Those of the end are there, and each line is either written or reported.
    expect(counts.slice(-3)).toEqual([told.count - 3, told.count - 2, told.count - 1]);
    expect(told.dropped).toBe(told.count - counts.length);
    expect(reports.reduce((sum, dropped) => sum + dropped, 0)).toBe(told.dropped);
    // One at once, one for each further second, and one at the end.
    expect(reports.length).toBeLessThanOrEqual(2 + told.fullMs / 1000);
  },
);
