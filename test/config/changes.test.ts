import { describe, expect, test } from "vitest";
import { changedKeys, restartKeys, withoutRestart } from "../../src/config/changes.ts";
import { load, SMALLEST } from "./configuration-file.ts";

const ROUTES = "routes: [{ name: all, path: /, upstream: app }]\n";
const ONE = `${SMALLEST}${ROUTES}`;
const TWO = ONE.replace("app: {", "other: { targets: ['http://127.0.0.1:1'] }, app: {");

async function changes(before: string, after: string): Promise<string[]> {
  const [first, second] = [await load(before), await load(after)];
  return changedKeys(first.configuration, second.configuration);
}

describe("changed keys", () => {
  test.each([
    ["none, if nothing changed", SMALLEST, SMALLEST, []],
    ["none, if only the notation changed", SMALLEST, `# the same\n${SMALLEST}`, []],
    [
      "none, if a default is written out",
      SMALLEST,
      SMALLEST.replace("tls: off", "tls: off, workers: 1"),
      [],
    ],
    [
      "the innermost key",
      SMALLEST,
      SMALLEST.replace("tls: off", "tls: off, timeouts: { header: 3s }"),
      ["server.timeouts.header"],
    ],
    [
      "an element of a list, by index",
      SMALLEST,
      SMALLEST.replace("127.0.0.1:8080", "127.0.0.1:8081"),
      ["upstreams.app.targets[0]"],
    ],
    [
      "a route, by its name: one in front of it changes no other",
      `${SMALLEST}${ROUTES}`,
      `${SMALLEST}${ROUTES.replace("[", "[{ name: more, path: /more/, upstream: app }, ")}`,
      ["routes.more"],
    ],
    ["a new upstream, in one piece", ONE, TWO, ["upstreams.other"]],
    ["a removed upstream", TWO, ONE, ["upstreams.other"]],
    [
      "one without a previous value",
      SMALLEST,
      `${SMALLEST}version: { text: "1.2.3" }\n`,
      ["version"],
    ],
    ["a disabled section", SMALLEST, `${SMALLEST}admin: off\n`, ["admin"]],
  ])("%s", async (_name, before, after, keys) => {
    expect(await changes(before, after)).toEqual(keys);
  });

  test("several are listed, and never their values", async () => {
    const after = SMALLEST.replace("tls: off", "tls: off, listen: '127.0.0.1:1', workers: 2");
    const changed = await changes(SMALLEST, `${after}version: { text: "9.9.9" }\n`);
    expect(changed.toSorted()).toEqual([
      "server.listen.host",
      "server.listen.port",
      "server.workers",
      "version",
    ]);
  });
});

describe("a change that needs a restart", () => {
  test.each([
    "server.listen.port",
    "server.listen.host",
    "server.workers",
    "server.limits.headerBytes",
    "server.tls.mode",
    "server.tls.clientCertificates.mode",
    "server.tls.clientCertificates",
    "server.timeouts.header",
    "admin",
    "admin.listen.port",
    "admin.allow[0]",
    "log.level",
    "log.access",
  ])("%s", (key) => {
    expect(restartKeys([key])).toEqual([key]);
  });

  test.each([
    "server.limits.headers",
    "server.tls.certFile",
    "server.tls.clientCertificates.caFile",
    "server.timeouts.request",
    "admin.probes[0]",
    "admin.ready.upstreams",
    "login.hashing.concurrency",
    "logger",
    "log.fields.tenant",
    "routes[0].name",
  ])("not %s", (key) => {
    expect(restartKeys([key])).toEqual([]);
  });
});

describe("without a restart", () => {
  async function inForce(before: string, after: string) {
    const [first, second] = [await load(before), await load(after)];
    return {
      first: first.configuration,
      second: second.configuration,
      result: withoutRestart(second.configuration, first.configuration),
    };
  }
  const TLS = "tls: { certFile: a.crt, keyFile: a.key }";
  const ASKING = TLS.replace(" }", ", clientCertificates: { mode: required, caFile: a.pem } }");

  test("settings that are read at start stay, and all others change", async () => {
    const { first, second, result } = await inForce(
      SMALLEST,
      SMALLEST.replace(
        "tls: off",
        "tls: off, listen: '127.0.0.1:1', workers: 2, limits: { headerBytes: 32KiB, headers: 50 }",
      ) + "admin: off\nlog: { level: warn, fields: { a: claim:b } }\ntokens: { lifetime: 5m }\n",
    );
    const { listen, workers } = first.server;
    expect(result).toEqual({
      ...second,
      server: {
        ...second.server,
        listen,
        workers,
        limits: { ...second.server.limits, headerBytes: first.server.limits.headerBytes },
      },
      admin: first.admin,
      log: { ...first.log, fields: { a: "claim:b" } },
    });
    expect(result.server.limits.headers).toBe(50);
  });

  test.each([
    ["tls: off", TLS],
    [TLS, "tls: off"],
    [TLS, "tls: { selfSigned: true }"],
  ])("switching the kind of TLS has no effect: %s, %s", async (before, after) => {
    const text = (tls: string): string => SMALLEST.replace("tls: off", tls);
    const { first, result } = await inForce(text(before), text(after));
    expect(result.server.tls).toEqual(first.server.tls);
  });

  test("a new certificate takes effect, but not a change of whether clients are asked for theirs", async () => {
    const other = (tls: string): string => SMALLEST.replace("tls: off", tls.replaceAll("a.", "b."));
    const asking = await inForce(SMALLEST.replace("tls: off", TLS), other(ASKING));
    expect(asking.result.server.tls).toMatchObject({ certFile: expect.stringMatching(/b\.crt$/) });
    expect(asking.result.server.tls).not.toHaveProperty("clientCertificates");
    const notAsking = await inForce(SMALLEST.replace("tls: off", ASKING), other(TLS));
    expect(notAsking.result.server.tls).toMatchObject({
      certFile: expect.stringMatching(/b\.crt$/),
      clientCertificates: { mode: "required", caFile: expect.stringMatching(/a\.pem$/) },
    });
  });
});
