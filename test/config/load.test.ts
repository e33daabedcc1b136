import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadConfiguration } from "../../src/config/load.ts";
import { ConfigError } from "../../src/core/config-problem.ts";
import { faultsOf, load, problemsOf, SMALLEST } from "./configuration-file.ts";

describe("a valid file", () => {
  test("gets every default", async () => {
    const { configuration } = await load(SMALLEST);
    expect(configuration).toEqual({
      authorization: {},
      apiKeys: [],
      server: {
        listen: { host: "0.0.0.0", port: 8443 },
        tls: { mode: "off" },
        workers: 1,
        http2: false,
        proxyProtocol: "off",
        trustedProxies: [],
        trustedHeaders: [],
        underscoreHeaders: "allow",
        ownPath: "/_sallyport",
        limits: {
          headerBytes: 16_384,
          headers: 100,
          bodyBytes: 10_485_760,
          streams: 100,
          bufferedBytes: 67_108_864,
          connections: 10_000,
          connectionsPerAddress: 1_000,
        },
        timeouts: { header: 10_000, request: 300_000, keepAlive: 65_000 },
        drain: { delay: 5_000, timeout: 20_000 },
      },
      admin: {
        listen: { host: "0.0.0.0", port: 9464 },
        allow: ["127.0.0.0/8", "::1"],
        probes: [],
        ready: { upstreams: "none", users: false },
      },
      login: {
        throttle: {
          attempts: 5,
          within: 120_000,
          ban: 300_000,
          address: { attempts: 50, within: 120_000, ban: 300_000 },
          account: { attempts: 100, within: 86_400_000 },
          global: { attempts: 300, within: 60_000 },
        },
        hashing: { concurrency: 2, queue: 32 },
      },
      users: [],
      tokens: {
        issuer: "sallyport",
        audience: "sallyport",
        lifetime: 18_000_000,
        algorithm: "ES256",
        cache: { entries: 10_000, bytes: 16 * 1024 ** 2 },
        trusted: [],
        jwks: { publish: false },
        proof: "refuse",
        revocation: { logout: false, users: true },
        streams: { endWithToken: true, grace: 0 },
        maxBytes: 8_192,
        errorDescription: false,
      },
      identity: { headers: "sallyport", claims: {} },
      networks: {},
      routes: [
        {
          name: "default",
          path: "/",
          auth: "required",
          mode: "enforce",
          upstream: "app",
          forwardAuthorization: "strip",
          hostHeader: "preserve",
          paths: "strict",
        },
      ],
      upstreams: {
        app: {
          targets: ["http://127.0.0.1:8080"],
          balance: "roundRobin",
          protocol: "http1",
          ejection: { failures: 5, for: 30_000, most: 0.5 },
          connections: 256,
          queue: { length: 64, timeout: 1_000 },
          timeouts: { connect: 5_000, response: 60_000, idle: 300_000 },
          websocket: { handshake: 10_000, idle: 300_000 },
        },
      },
      log: { level: "info", format: "auto", access: "all", fields: {} },
    });
  });

  test("has paths resolved relative to the file", async () => {
    const { configuration, problem } = await load(`
server: { tls: { certFile: tls/tls.crt, keyFile: /abs/tls.key } }
users: [{ kind: file, path: ../users.yaml }]
tokens: { keys: keys, trusted: [{ issuer: a, audience: b, jwks: { file: jwks.json }, algorithms: [ES256] }] }
version: { file: VERSION }
upstreams: { app: { targets: ["https://app"], tls: { caFile: ca.crt } } }
`);
    const directory = dirname(problem({ path: [], message: "" }).file);
    expect(configuration.server.tls).toEqual({
      mode: "files",
      certFile: join(directory, "tls/tls.crt"),
      keyFile: "/abs/tls.key",
      minVersion: "TLSv1.2",
    });
    expect(configuration.users).toEqual([
      { kind: "file", path: join(dirname(directory), "users.yaml") },
    ]);
    expect(configuration.tokens.keys).toBe(join(directory, "keys"));
    expect(configuration.tokens.trusted[0]).toMatchObject({
      jwks: { file: join(directory, "jwks.json") },
    });
    expect(configuration.version).toEqual({ file: join(directory, "VERSION") });
    expect(configuration.upstreams["app"]?.tls).toEqual({ caFile: join(directory, "ca.crt") });
  });

  test("is deeply frozen", async () => {
    const { configuration } = await load(SMALLEST);
    const unfrozen = (value: unknown): boolean =>
      typeof value === "object" &&
      value !== null &&
      (!Object.isFrozen(value) || Object.values(value).some(unfrozen));
    expect(unfrozen(configuration)).toBe(false);
  });

  test("may disable the body limit with a word", async () => {
    const { configuration } = await load(
      SMALLEST.replace("tls: off", "tls: { selfSigned: true }, limits: { bodyBytes: unlimited }"),
    );
    expect(configuration.server.limits.bodyBytes).toBe(Infinity);
    expect(configuration.server.tls).toEqual({ mode: "selfSigned" });
  });
});

describe("a file that is not valid", () => {
  const MANY = `server:
  listn: "0.0.0.0:8443"
  tls: off
  limits: { headerBytes: 16384 }
  timeouts: { header: 10 }
routes:
  - { name: a, upstream: ordrs, auth: none, require: { groups: { any: [x] } } }
upstreams:
  orders: { targets: ["http://x:1"] }
  orders: {}
log:
  level: inf
`;

  test("has all its problems reported at once, in order, with positions", async () => {
    expect(await faultsOf(MANY)).toEqual([
      "2:3 server.listn",
      "4:26 server.limits.headerBytes",
      "5:23 server.timeouts.header",
      "7:26 routes[0].upstream",
      "7:45 routes[0].require",
      "10:3 this",
      "12:10 log.level",
    ]);
  });

  test("has all of thousands reported in less than five seconds", async () => {
    const began = performance.now();
    const faults = await faultsOf(`routes:\n${"- { nme: a }\n".repeat(10_000)}`);
    expect(faults.length).toBeGreaterThan(20_000);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  test("gets suggestions for names that resemble valid ones", async () => {
    const problems = await problemsOf(MANY);
    const hints = problems.map(({ hint }) => hint).filter((hint) => hint !== undefined);
    expect(hints).toEqual(["did you mean listen?", "did you mean orders?", "did you mean info?"]);
  });

  test("gets a message about a missing unit", async () => {
    const problems = await problemsOf(MANY);
    expect(problems[1]?.message).toMatch(/unit.*\bB, KiB, MiB or GiB\b/);
    expect(problems[2]?.message).toMatch(/unit.*\bms, s, m or h\b/);
  });

  test("that is empty says so, and what makes one", async () => {
    const hint = "make one with sallyport init; sallyport demo runs without one";
    expect(await problemsOf("# nothing\n")).toEqual([
      { file: "config.yaml", message: "the file is empty", hint },
    ]);
  });

  test("has a misspelt key reported once, not also as missing", async () => {
    expect(await faultsOf(SMALLEST.replace("targets", "target"))).toEqual([
      "2:21 upstreams.app.target",
    ]);
    expect(await faultsOf(`${SMALLEST}version: { txt: "1.2.3" }`)).toEqual(["3:12 version.txt"]);
  });

  test.each([
    ["a syntax error", 'server:\n  tls: "off\n'],
    ["a second document", `${SMALLEST}---\n`],
    ["a list instead of a mapping", "- a\n"],
    ["text instead of a mapping", "hello\n"],
    ["bytes that are not UTF-8", Buffer.from([0x61, 0x3a, 0x20, 0xff])],
  ])("%s is refused", async (_what, text) => {
    expect(await problemsOf(text)).toHaveLength(1);
  });

  test("that does not exist is reported like any other problem", () => {
    const attempt = () =>
      loadConfiguration({ file: "/nonexistent/c.yaml", env: {}, overrides: {} });
    expect(attempt).toThrow(ConfigError);
  });

  test("has no line shown that contains a secret", async () => {
    const targets = '["http://user:hunter2@host"]';
    const problems = await problemsOf(
      `server: { tls: off }\nupstreams: { app: { targets: ${targets} } }`,
    );
    expect(problems).toHaveLength(1);
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });
});

test.each([
  [
    "a target without a scheme",
    'targets: ["127.0.0.1:3000"]',
    "did you mean http://127.0.0.1:3000?",
  ],
  ["a target with a path", 'targets: ["http://h:1/api"]', "leave the path out"],
  ["text for a list", "targets: http://h:1", "put it in brackets"],
])("a hint for %s", async (_name, targets, hint) => {
  const [problem] = await problemsOf(`server: { tls: off }\nupstreams: { app: { ${targets} } }\n`);
  expect(problem?.hint).toContain(hint);
});

test("an unknown kind gets a list of the known ones", async () => {
  const [problem] = await problemsOf(`${SMALLEST}users: [{ kind: nis, path: a }]\n`);
  expect(problem?.message).toMatch(/^users\[0\]\.kind must be one of file, .*\bldap\b/);
});

test("a target with a password is not repeated", async () => {
  const problems = await problemsOf(
    'server: { tls: off }\nupstreams: { app: { targets: ["http://u:hunter2@h:1/x"] } }\n',
  );
  expect(problems[0]?.hint).toBeUndefined();
});

test("a duplicate key is reported with both positions", async () => {
  const [problem] = await problemsOf(`${SMALLEST}server: {}\n`);
  expect(problem).toMatchObject({ line: 3, message: "this key appears twice, first in line 1" });
});
