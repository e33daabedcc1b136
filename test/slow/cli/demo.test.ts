import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { appendFile, mkdir, readdir } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { freeAddress } from "../../../tools/demo/demo.ts";
import { type Child, startChild } from "../../support/child.ts";
import { entry } from "../../support/entry.ts";
import { listeningPort } from "../../support/listening-port.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { childCommand } from "../../cli/command.ts";

const FREE_PORTS = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];

interface Demo {
  readonly child: Child;
  /** Returns the value after a label of the banner. */
  fact(name: string): string;
  /** The directory in which the demo creates its own. */
  readonly parent: string;
}

/** Starts a demo in a directory whose name needs quoting, with environment variables that it must ignore. */
async function startDemo(): Promise<Demo> {
  const temporary = await temporaryDirectory();
  const parent = join(temporary.path, "it's here");
  await mkdir(parent);
  const env = { TMPDIR: parent, SALLYPORT_SERVER__LISTEN: "x", SALLYPORT_CONFIG: "/none" };
  const child = startChild(entry(), ["demo", ...FREE_PORTS], env);
  onTestFinished(async () => {
    await child.kill();
    await temporary.close();
  });
  await child.line((line) => (line.includes('"admin listening"') ? line : undefined));
  const fact = (name: string): string =>
    child.lines
      .find((line) => line.startsWith(`  ${name} `))
      ?.slice(2 + name.length)
      .trim() ?? "";
  return { child, parent, fact };
}

/** Returns the lines before the log. */
function bannerOf({ child }: Demo): string[] {
  return child.lines.slice(
    0,
    child.lines.findIndex((line) => line.startsWith("{")),
  );
}

it("prints all addresses and files, then its log", async () => {
  const demo = await startDemo();
  const banner = bannerOf(demo);
  const log = demo.child.lines.slice(banner.length);
  expect(banner.length).toBeGreaterThan(20);
  expect(log.every((line) => line.startsWith("{"))).toBe(true);
  expect(demo.child.stderr()).toBe("");
  const ports = log
    .map((line) => JSON.parse(line) as { msg: string; port?: number })
    .flatMap(({ port }) => port ?? []);
  expect(ports).toHaveLength(2);
  expect(demo.fact("address")).toBe(`https://127.0.0.1:${ports[0]}`);
  expect(banner.join("\n")).toContain(`http://127.0.0.1:${ports[1]}/metrics`);
  expect(demo.fact("password")).toMatch(/^(?:[a-z2-9]{4}-){3}[a-z2-9]{4}$/);
  expect(log.join("\n")).not.toContain(demo.fact("password"));
});

it("keeps its files private, and writes a valid configuration", async () => {
  const { fact } = await startDemo();
  const configuration = fact("configuration");
  expect(statSync(join(configuration, "..")).mode & 0o777).toBe(0o700);
  expect(statSync(configuration).mode & 0o777).toBe(0o600);
  expect((await childCommand(["check", "--config", configuration])).code).toBe(0);
});

it("reloads its configuration when that changes", async () => {
  const { child, fact } = await startDemo();
  await appendFile(fact("configuration"), "\ntokens: { lifetime: 7m }\n");
  const line = (each: string) => (each.includes("configuration was reloaded") ? each : undefined);
  expect(JSON.parse(await child.line(line))).toMatchObject({ changed: ["tokens.lifetime"] });
});

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

describe.skipIf(!hasCurl)("the lines to paste (skipped without curl)", () => {
  it("do what their titles say", async () => {
    const demo = await startDemo();
    const banner = bannerOf(demo);
    // What is pasted below each title: a function on each line, or one command.
    const examples = banner.flatMap((title, index) => {
      const below = banner.slice(index + 1);
      const lines = below.slice(
        0,
        below.findIndex((line) => !line.startsWith("  ")),
      );
      return title.endsWith(":") && lines.length > 0 ? [lines.join("\n")] : [];
    });
    const script = examples.map((lines) => `${lines}\nprintf '<%s>' "$?"`).join("\n");
    const shell = spawn("sh", { stdio: ["pipe", "pipe", "pipe"] });
    shell.stdin.end(script);
    const [answers, complaints] = await Promise.all([text(shell.stdout), text(shell.stderr)]);
    expect(complaints).toBe("");
    // Each part ends with the exit code of its line.
    const parts = answers.split("<0>");
    expect(parts).toHaveLength(examples.length + 1);
    const [first, login, token, forwarded, version, denied, forbidden, open, events, ready, rest] =
      parts.map((part) => part.trim());

    expect(first).toBe("");
    expect(JSON.parse(login ?? "")).toMatchObject({ success: true, token: expect.any(String) });
    expect(token).toBe("");
    expect(JSON.parse(forwarded ?? "")).toMatchObject({
      method: "GET",
      path: "/orders?page=2",
      headers: { "x-auth-subject": "demo", "x-auth-groups": "visitors" },
    });
    expect(forwarded).not.toContain("authorization");
    expect(JSON.parse(version ?? "")).toMatchObject({
      success: true,
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    });
    expect(denied).toMatch(/^HTTP\/1\.1 401 /);
    expect(forbidden).toMatch(/^HTTP\/1\.1 403 /);
    expect(JSON.parse(open ?? "")).toMatchObject({ path: "/public/welcome" });
    expect(open).not.toContain("x-auth-");
    expect(events?.match(/^data: .+$/gm)).toHaveLength(3);
    expect(ready).toBe("ready");
    expect(rest).toBe("");
  });
});

it("uses its default port if that is free, otherwise any free port", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const port = listeningPort(taken);
  expect(await freeAddress(port)).toBe("127.0.0.1:0");
  await promisify(taken.close.bind(taken))();
  expect(await freeAddress(port)).toBe(`127.0.0.1:${port}`);
});

describe("exits", () => {
  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "on %s, and removes its files",
    async (signal) => {
      const { child, fact, parent } = await startDemo();
      expect(existsSync(fact("configuration"))).toBe(true);
      child.signal(signal);
      expect(await child.exit).toBe(0);
      expect(await readdir(parent)).toEqual([]);
    },
  );

  it.each(["--listen", "--admin-listen"])("when the port of %s is in use", async (flag) => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const temporary = await temporaryDirectory();
    onTestFinished(() => temporary.close());
    const address = `127.0.0.1:${listeningPort(taken)}`;
    const { code, out, err } = await childCommand(["demo", ...FREE_PORTS, flag, address], {
      env: { TMPDIR: temporary.path },
    });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^sallyport demo: [^\n]+\n$/);
    expect(err).toContain(address);
    expect(await readdir(temporary.path)).toEqual([]);
  });
});
