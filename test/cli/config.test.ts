import { beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { loadConfiguration } from "../../src/config/load.ts";
import { childCommand, command } from "./command.ts";
import { type Deployment, deployment } from "./deployment.ts";

let shipped: Deployment;

beforeEach(async () => {
  shipped = await deployment();
});

interface Row {
  readonly key: string;
  readonly value: unknown;
  readonly origin: string;
}

async function rows(
  flags: readonly string[] = shipped.flags,
  env: Readonly<Record<string, string>> = {},
): Promise<ReadonlyMap<string, Row>> {
  const { code, out, err } = await command(["config", "--format", "json", ...flags], env);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return new Map((JSON.parse(out) as Row[]).map((row) => [row.key, row]));
}

const SMALL = "server: { tls: off }\nupstreams: { app: { targets: [unix:/run/app.sock] } }\n";

describe("the effective configuration", () => {
  it("is printed as a file with the same meaning", async () => {
    const before = loadConfiguration({
      file: `${shipped.directory}/config.yaml`,
      env: {},
      overrides: {},
    }).configuration;
    const config = shipped.flags.slice(0, 2);
    const { code, out, err } = await childCommand(["config", ...config]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    await shipped.write("again.yaml", out);
    const file = `${shipped.directory}/again.yaml`;
    const again = loadConfiguration({ file, env: {}, overrides: {} }).configuration;
    expect(again).toEqual(before);
  });

  it("is complete even for the smallest file", async () => {
    await shipped.write("config.yaml", SMALL);
    const config = shipped.flags.slice(0, 2);
    const { out } = await command(["config", ...config]);
    await shipped.write("again.yaml", out);
    const [before, again] = ["config.yaml", "again.yaml"].map(
      (name) =>
        loadConfiguration({ file: `${shipped.directory}/${name}`, env: {}, overrides: {} })
          .configuration,
    );
    expect(again).toEqual(before);
    expect(parse(out)).toMatchObject({
      routes: [{ name: "default", path: "/", auth: "required", upstream: "app" }],
    });
  });

  it("has the defaults of the kind of each entry, not of another kind with the same keys", async () => {
    const users = "users: [{ kind: http, url: 'https://login.example/check' }]\n";
    await shipped.write("config.yaml", SMALL + users);
    const found = await rows(["--config", `${shipped.directory}/config.yaml`]);
    const shown = (key: string) => found.get(`users[0].${key}`)?.value;
    expect([shown("format"), shown("status.wrong")]).toEqual(["json", [401, 403]]);
  });

  it("includes the origin of each value", async () => {
    await shipped.write("config.yaml", `${SMALL}log:\n  level: \${LEVEL:-warn}\nadmin: off\n`);
    const file = `${shipped.directory}/config.yaml`;
    const found = await rows(
      ["--config", file, "--set", "server.workers=2", "--set", "server.trustedProxies=[10.0.0.1]"],
      { SALLYPORT_TOKENS__ISSUER: "us", SALLYPORT_SERVER__WORKERS: "4" },
    );
    const shown = (key: string) => [found.get(key)?.value, found.get(key)?.origin];
    expect(shown("server.workers")).toEqual([2, "flag server.workers"]);
    expect(shown("server.trustedProxies")).toEqual([["10.0.0.1"], "flag server.trustedProxies"]);
    expect(shown("tokens.issuer")).toEqual(["us", "environment variable SALLYPORT_TOKENS__ISSUER"]);
    expect(shown("log.level")).toEqual(["warn", `${file}:4 from \${LEVEL:-warn}`]);
    expect(shown("admin")).toEqual(["off", `${file}:5`]);
    expect(shown("upstreams.app.targets")).toEqual([["unix:/run/app.sock"], `${file}:2`]);
    expect(shown("tokens.lifetime")).toEqual(["5h", "default"]);
    expect(shown("routes[0].name")).toEqual(["default", "default"]);
  });

  it("shows no secret, wherever it is set", async () => {
    await shipped.write("secret", "hunter2-from-file\n");
    await shipped.write(
      "config.yaml",
      `${SMALL}tokens:\n  issuer: \${file:secret}\n  audience: \${API_PASSWORD}\n` +
        "  trusted:\n    - { issuer: 'https://a:hunter2-url@b/', audience: $argon2id$v=19$hunter2-hash, " +
        "jwks: { file: j.json }, algorithms: [ES256] }\n",
    );
    const args = ["--config", `${shipped.directory}/config.yaml`];
    const env = { API_PASSWORD: "hunter2-from-env", SALLYPORT_ADMIN: "off" };
    for (const format of ["yaml", "json"]) {
      const { code, out } = await command(["config", ...args, "--format", format], env);
      expect(code).toBe(0);
      expect(out).not.toContain("hunter2");
      expect(out).toContain("${file:secret}");
    }
    expect((await rows(args, env)).get("tokens.issuer")?.value).toBe("${file:secret}");
  });

  it("shows no secret from a reference, even inside a longer value", async () => {
    await shipped.write("secret", "hunter2-file\n");
    await shipped.write(
      "config.yaml",
      `server: { tls: off, trustedProxies: ["\${PROXY_CRED:-10.77.0.0/16}"] }
upstreams: { app: { targets: ["http://\${HOST_TOKEN}:80", "http://\${PLAIN}:81"] } }
tokens:
  issuer: "https://user:hunter2-literal@id.example.com/\${PLAIN}"
  audience: \${DB_PASSWORD:-hunter2-default}
  trusted:
    - { issuer: "\${GITHUB_AUTH}", audience: "\${MY_BEARER}", algorithms: [ES256],
        jwks: { url: "https://id.example.com/jwks?api_key=hunter2-a&page=1;token=hunter2-b" } }
routes:
  - { name: all, upstream: app, require: { groups: { any: ["\${file:secret}", "\${GROUP_PWD}", "\${PLAIN}"] } } }
`,
    );
    const env = {
      HOST_TOKEN: "hunter2-host",
      PLAIN: "plain",
      GROUP_PWD: "hunter2-group",
      GITHUB_AUTH: "hunter2-auth",
      MY_BEARER: "hunter2-bearer",
    };
    const args = ["--config", `${shipped.directory}/config.yaml`];
    for (const format of ["yaml", "json"]) {
      const { code, out } = await command(["config", ...args, "--format", format], env);
      expect(code).toBe(0);
      expect(out).not.toMatch(/hunter2|10\.77/);
    }
    const found = await rows(args, env);
    const shown = (key: string) => found.get(key)?.value;
    const file = `${shipped.directory}/config.yaml`;
    expect(shown("upstreams.app.targets")).toEqual(["http://${HOST_TOKEN}:80", "http://plain:81"]);
    expect(found.get("upstreams.app.targets")?.origin).toBe(`${file}:2 from http://\${PLAIN}:81`);
    expect(shown("routes[0].require.groups.any")).toEqual([
      "${file:secret}",
      "${GROUP_PWD}",
      "plain",
    ]);
    expect(shown("tokens.audience")).toBe("${DB_PASSWORD:-[masked]}");
    expect(shown("server.trustedProxies")).toEqual(["${PROXY_CRED:-[masked]}"]);
    expect(shown("tokens.trusted[0].issuer")).toBe("${GITHUB_AUTH}");
    expect(shown("tokens.trusted[0].jwks.url")).toBe(
      "https://id.example.com/jwks?api_key=[redacted]&page=1;token=[redacted]",
    );
    expect(found.get("tokens.issuer")?.origin).toBe(
      `${file}:4 from https://user:[redacted]@id.example.com/\${PLAIN}`,
    );
  });

  it("marks values as defaults if a section that was set in one piece omits them", async () => {
    await shipped.write("config.yaml", SMALL);
    const args = ["--config", `${shipped.directory}/config.yaml`];
    const found = await rows(args, { SALLYPORT_SERVER__LIMITS: "{ headerBytes: 32KiB }" });
    const origin = (key: string) => found.get(key)?.origin;
    const variable = "environment variable SALLYPORT_SERVER__LIMITS";
    expect(origin("server.limits.headerBytes")).toBe(variable);
    expect(origin("server.limits.headers")).toBe("default");
    expect(origin("server.limits.bodyBytes")).toBe("default");
  });

  it("includes derived values and sections that were not written", async () => {
    await shipped.write("config.yaml", `${SMALL}login: { throttle: { attempts: 7, ban: 6m } }\n`);
    const found = await rows(["--config", `${shipped.directory}/config.yaml`]);
    const shown = (key: string) => [found.get(key)?.value, found.get(key)?.origin];
    expect(shown("admin.listen")).toEqual(["0.0.0.0:9464", "default"]);
    expect(shown("admin.ready.upstreams")).toEqual(["none", "default"]);
    expect(shown("login.throttle.address.attempts")).toEqual([70, "default"]);
    expect(shown("login.throttle.address.within")).toEqual(["2m", "default"]);
    expect(shown("login.throttle.address.ban")).toEqual(["6m", "default"]);
  });

  it("shows the origin of a reference in a flag", async () => {
    await shipped.write("config.yaml", SMALL);
    const file = `${shipped.directory}/config.yaml`;
    const set = ["--set", "tokens.audience=${PLAIN}", "--set", "tokens.issuer=${MY_SECRET}"];
    const found = await rows(["--config", file, ...set], { PLAIN: "plain", MY_SECRET: "hunter2" });
    expect(found.get("tokens.audience")).toMatchObject({
      value: "plain",
      origin: "flag tokens.audience from ${PLAIN}",
    });
    expect(found.get("tokens.issuer")).toMatchObject({
      value: "${MY_SECRET}",
      origin: "flag tokens.issuer",
    });
  });

  it("is not printed if it is invalid", async () => {
    const { code, out } = await command(["config", ...shipped.flags, "--set", "server.workers=x"]);
    expect({ code, out }).toEqual({ code: 78, out: "" });
    expect((await command(["config", "--format", "text"])).code).toBe(2);
  });
});
