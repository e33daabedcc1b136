import { describe, expect, test } from "vitest";
import { load, problemsOf, SMALLEST } from "./configuration-file.ts";

const FILE = SMALLEST.replace("tls: off", "tls: off, workers: 2").concat("log: { level: warn }\n");

test("a variable that ends in _FILE names a file with the value", async () => {
  const shared = `${SMALLEST}shared: { kind: redis, url: redis://127.0.0.1:1 }\n`;
  const { configuration, files } = await load(shared, {
    env: { SALLYPORT_SHARED__PASSWORD_FILE: "secret" },
    files: { secret: "s3cr3t\n" },
  });
  expect(configuration.shared?.password).toBe("s3cr3t");
  // Followed like every other file.
  expect([...files.keys()].map((file) => file.replace(/^.*\//, ""))).toContain("secret");
  const env = { SALLYPORT_SHARED__PASSWORD_FILE: "none", SALLYPORT_SHARED__PASSWORT_FILE: "none" };
  const problems = await problemsOf(shared, { env });
  expect(problems.map(({ file, message }) => `${file}: ${message}`)).toEqual([
    expect.stringMatching(/PASSWORD_FILE: shared.password names a file .* cannot be read/),
    expect.stringMatching(/PASSWORT_FILE: does not name a known key$/),
  ]);
});

test("flags override the environment, which overrides the file, which overrides the defaults", async () => {
  const env = { SALLYPORT_SERVER__WORKERS: "3", SALLYPORT_LOG__LEVEL: "error" };
  const overrides = { "server.workers": "4" };
  const workersAndLevel = async (outside: object): Promise<unknown[]> => {
    const { server, log } = (await load(FILE, outside)).configuration;
    return [server.workers, log.level, log.format];
  };
  expect(await workersAndLevel({})).toEqual([2, "warn", "auto"]);
  expect(await workersAndLevel({ env })).toEqual([3, "error", "auto"]);
  expect(await workersAndLevel({ env, overrides })).toEqual([4, "error", "auto"]);
});

describe("an environment variable", () => {
  test("names keys case-insensitively, and upstreams of the file", async () => {
    const loaded = await load(SMALLEST.replace("app", "my-app"), {
      env: {
        SALLYPORT_SERVER__LIMITS__bodybytes: "unlimited",
        SALLYPORT_UPSTREAMS__MY_APP__TARGETS: '["http://a:1", "http://b:2"]',
        SALLYPORT_SERVER__LISTEN: "[::]:8443",
      },
    });
    expect(loaded.configuration.server.limits.bodyBytes).toBe(Infinity);
    expect(loaded.configuration.server.listen).toEqual({ host: "::", port: 8443 });
    expect(loaded.configuration.upstreams["my-app"]?.targets).toEqual(["http://a:1", "http://b:2"]);
  });

  test("may set an entire section, and single keys of it", async () => {
    const { configuration } = await load(SMALLEST, {
      env: {
        SALLYPORT_SERVER__DRAIN__DELAY: "2s",
        SALLYPORT_SERVER__DRAIN: "{ delay: 1s, timeout: 3s }",
        SALLYPORT_USERS: "[{ kind: file, path: /users.yaml }]",
        SALLYPORT_UPSTREAMS__OTHER__TARGETS: '["http://c:3"]',
        SALLYPORT_ROUTES: "[{ name: all, upstream: other }]",
      },
    });
    expect(configuration.server.drain).toEqual({ delay: 2_000, timeout: 3_000 });
    expect(configuration.users).toEqual([{ kind: "file", path: "/users.yaml" }]);
    expect(configuration.routes[0]?.upstream).toBe("other");
  });

  test("may contain references, like the file", async () => {
    const { configuration, files } = await load(SMALLEST, {
      env: {
        SALLYPORT_TOKENS__ISSUER: "${HOME_NAME:-fallback}",
        SALLYPORT_SERVER__WORKERS: "${COUNT}",
        SALLYPORT_UPSTREAMS__APP__TARGETS: '["http://${HOST}:1"]',
        COUNT: "3",
        HOST: "a",
        AUDIENCE: "${COUNT}",
      },
      overrides: { "tokens.audience": "${AUDIENCE}", "version.text": "${file:version}" },
      files: { version: "1.2.3\n" },
    });
    expect(configuration.tokens.issuer).toBe("fallback");
    expect(configuration.tokens.audience).toBe("${COUNT}");
    expect(configuration.server.workers).toBe(3);
    expect(configuration.upstreams["app"]?.targets).toEqual(["http://a:1"]);
    expect(configuration.version).toEqual({ text: "1.2.3" });
    expect([...files.keys()].map((file) => file.replace(/^.*\//, ""))).toContain("version");
  });

  test("with an undefined reference is reported by name", async () => {
    const problems = await problemsOf(SMALLEST, {
      env: { SALLYPORT_TOKENS__ISSUER: "${MISSING}", SALLYPORT_USERS: '["${file:none}"]' },
      overrides: { "tokens.audience": "${MISSING:?ask the platform team}", "log.level": "${" },
    });
    expect(problems.map(({ file, message }) => `${file}: ${message}`)).toEqual([
      expect.stringMatching(/^environment variable SALLYPORT_USERS: users\[0\] names a file/),
      expect.stringMatching(/^environment variable SALLYPORT_TOKENS__ISSUER: .* MISSING, which/),
      expect.stringMatching(/^flag tokens.audience: .*ask the platform team$/),
      expect.stringMatching(/^flag log.level: log.level contains a /),
    ]);
  });

  test("with an unknown name or a bad value is reported by name, without its value", async () => {
    const problems = await problemsOf(SMALLEST, {
      env: {
        SALLYPORT_SERVR__LISTEN: "hunter2",
        SALLYPORT_SERVER__WORKERS: "hunter2",
        SALLYPORT_USERS: "[hunter2: {]",
        SALLYPORT_UPSTREAMS____PROTO____TARGETS: "hunter2",
        SALLYPORT_LOG__LEVEL: "inf",
      },
      overrides: { "server.__proto__": "hunter2" },
    });
    expect(Object.fromEntries(problems.map(({ file, hint }) => [file, hint]))).toEqual({
      "environment variable SALLYPORT_SERVR__LISTEN": "did you mean SALLYPORT_SERVER__LISTEN?",
      "environment variable SALLYPORT_SERVER__WORKERS": undefined,
      "environment variable SALLYPORT_USERS": undefined,
      "environment variable SALLYPORT_UPSTREAMS____PROTO____TARGETS": undefined,
      "environment variable SALLYPORT_LOG__LEVEL": "did you mean info?",
      "flag server.__proto__": undefined,
    });
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });

  test("of a Kubernetes Service named sallyport is ignored", async () => {
    const env = {
      SALLYPORT_SERVICE_HOST: "10.0.0.1",
      SALLYPORT_SERVICE_PORT: "8443",
      SALLYPORT_SERVICE_PORT_HTTPS: "8443",
      SALLYPORT_PORT: "tcp://10.0.0.1:8443",
      SALLYPORT_PORT_8443_TCP: "tcp://10.0.0.1:8443",
      SALLYPORT_PORT_8443_TCP_PROTO: "tcp",
      SALLYPORT_PORT_8443_TCP_PORT: "8443",
      SALLYPORT_PORT_8443_TCP_ADDR: "10.0.0.1",
      SALLYPORT_ADMIN_SERVICE_HOST: "10.0.0.2",
    };
    expect(await problemsOf(SMALLEST, { env })).toEqual([]);
  });
});
