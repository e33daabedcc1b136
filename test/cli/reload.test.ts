/** `sallyport reload` and `sallyport status`: they ask the running process. */
import { createServer } from "node:http";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { editConfiguration, type WrittenConfiguration } from "../support/edits.ts";
import { closedPort } from "../support/dead-ends.ts";
import { listeningPort } from "../support/listening-port.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import { command } from "./command.ts";

vi.setConfig({ testTimeout: 30_000 });

/** The warnings of this configuration: a route in monitor mode, and a route that another one hides. */
const routes = [
  { name: "watched", path: "/watched", mode: "monitor", upstream: "app" },
  { name: "host", hosts: ["h"], upstream: "app" },
];
let gate: Sallyport;
let at: string[];
beforeAll(async () => {
  gate = await startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    config: { routes, users: [] },
  });
  at = ["--url", `http://127.0.0.1:${gate.adminPort}`];
}, 30_000);
afterAll(() => gate.close());

const change = (edit: (config: WrittenConfiguration) => void) => editConfiguration(gate, edit);
const warned = (): string[] =>
  gate.log().flatMap(({ level, msg }) => (level === "warn" ? [String(msg)] : []));

it("reload says what changed, and what waits for a restart", async () => {
  await change((config) => {
    config.server["workers"] = 2;
    config.routes[0] = { ...config.routes[0], name: "seen" };
  });
  const { code, out, err } = await command(["reload", ...at]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^The configuration was reloaded\n/);
  expect(out).toContain("waits for a restart: server.workers\n");
});

it("reload says why nothing was reloaded, and a script can read it", async () => {
  await change((config) => (config["toknes"] = {}));
  const { code, out, err } = await command(["reload", ...at]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toMatch(/stays in force\n {2}\S+config\.yaml:\d+:\d+: toknes is not a known key/);
  const asJson = await command(["reload", "--format", "json", ...at]);
  expect(asJson.code).toBe(1);
  expect(JSON.parse(asJson.out)).toMatchObject({
    success: false,
    problems: [{}].map(() => expect.any(String)),
  });
  await change((config) => delete config["toknes"]);
});

it("a warning that still holds is not said again", async () => {
  await command(["reload", ...at]);
  const before = warned();
  expect(before).toContain("NOBODY IS REFUSED on routes with mode: monitor");
  expect(before).toContain("there are no users: nobody can log in");
  expect(before).toContain("the configuration needs attention");
  expect(before).toContain("changed keys need a restart");
  for (let round = 0; round < 2; round += 1) await command(["reload", ...at]);
  // One that was gone is said again.
  await change((config) => (config.routes[0] = { ...config.routes[0], mode: "enforce" }));
  await command(["reload", ...at]);
  await change((config) => (config.routes[0] = { ...config.routes[0], mode: "monitor" }));
  await command(["reload", ...at]);
  await until(() => warned().length > before.length, 10_000);
  expect(warned().slice(before.length)).toEqual(["NOBODY IS REFUSED on routes with mode: monitor"]);
});

it("status says in words and as JSON what the status page shows", async () => {
  const { code, out } = await command(["status", ...at]);
  expect(code).toBe(0);
  expect(out).toMatch(/^Sallyport \S+ {2}\S+ {2}ready {2}up /);
  // There is no rate without an earlier status, and so no column for it.
  expect(out).toMatch(/REQUESTS {2}4xx/);
  for (const words of [["status"], ["top", "--once"]]) {
    const asJson = await command([...words, "--format", "json", ...at]);
    expect(asJson.code).toBe(0);
    expect(JSON.parse(asJson.out)).toMatchObject({ ready: true, state: "serving" });
  }
});

it("token revoke says that a misspelt name looks like any other", async () => {
  const { code, out, err } = await command(["token", "revoke", "--subject", "nobody", ...at]);
  expect({ code, out: out.split(":")[0] }).toEqual({
    code: 0,
    out: "Revoked until the next start",
  });
  expect(err).toBe("nothing tells whether there are such tokens: check the spelling of the name\n");
});

it("both say why there is no answer", async () => {
  const other = createServer((_, response) => response.end("{}")).listen(0, "127.0.0.1");
  await new Promise((resolve) => void other.once("listening", resolve));
  for (const name of ["reload", "status"]) {
    const nobody = await command([name, "--url", `http://127.0.0.1:${await closedPort()}`]);
    expect([nobody.code, nobody.out]).toEqual([1, ""]);
    expect(nobody.err).toContain("ECONNREFUSED");
    const stranger = await command([name, "--url", `http://127.0.0.1:${listeningPort(other)}`]);
    expect(stranger.code).toBe(1);
    expect(stranger.err).toContain("says 200");
  }
  other.close();
});
