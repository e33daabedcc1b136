import { describe, expect, test } from "vitest";
import { changedKeys, restartKeys, withoutRestart } from "../../src/config/effective/changes.ts";
import { load, SMALLEST } from "./configuration-file.ts";

const ROUTES = "routes: [{ name: all, path: /, upstream: app }]\n";
const ONE = `${SMALLEST}${ROUTES}`;
const TWO = ONE.replace("app: {", "other: { targets: ['http://127.0.0.1:1'] }, app: {");

async function changes(before: string, after: string): Promise<string[]> {
  const [first, second] = [await load(before), await load(after)];
  return changedKeys(first.configuration, second.configuration);
}

describe("the keys that changed", () => {
  test.each([
    ["none, when nothing did", SMALLEST, SMALLEST, []],
    ["none, when the same is said in other words", SMALLEST, `# the same\n${SMALLEST}`, []],
    [
      "none, when a default is spelt out",
      SMALLEST,
      SMALLEST.replace("tls: off", "tls: off, workers: 1"),
      [],
    ],
    [
      "one, as deep as it goes",
      SMALLEST,
      SMALLEST.replace("tls: off", "tls: off, timeouts: { header: 3s }"),
      ["server.timeouts.header"],
    ],
    [
      "an element of a list, by its place",
      SMALLEST,
      SMALLEST.replace("127.0.0.1:8080", "127.0.0.1:8081"),
      ["upstreams.app.targets[0]"],
    ],
    [
      "a route, by its place",
      `${SMALLEST}${ROUTES}`,
      `${SMALLEST}${ROUTES.replace("}]", "}, { name: more, path: /more/, upstream: app }]")}`,
      ["routes[1]"],
    ],
    ["an upstream that is new, as a whole", ONE, TWO, ["upstreams.other"]],
    ["an upstream that is gone", TWO, ONE, ["upstreams.other"]],
    [
      "one that had no value before",
      SMALLEST,
      `${SMALLEST}version: { text: "1.2.3" }\n`,
      ["version"],
    ],
    ["a section that was switched off", SMALLEST, `${SMALLEST}admin: off\n`, ["admin"]],
  ])("are %s", async (_name, before, after, keys) => {
    expect(await changes(before, after)).toEqual(keys);
  });

  test("are several, and never their values", async () => {
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

describe("the keys that need a restart", () => {
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
  ])("%s does", (key) => {
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
  ])("%s does not", (key) => {
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

  test("what is read at start stays, and all else changes", async () => {
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
        ...{ listen, workers },
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
  ])("TLS of another kind does not: %s, %s", async (before, after) => {
    const text = (tls: string): string => SMALLEST.replace("tls: off", tls);
    const { first, result } = await inForce(text(before), text(after));
    expect(result.server.tls).toEqual(first.server.tls);
  });

  test("another certificate does, and whether clients are asked for theirs does not", async () => {
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
