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
  it("is a file that says the same again", async () => {
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

  it("is whole for the smallest file", async () => {
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

  it("tells the origin of each value", async () => {
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

  it("shows no secret, wherever it was put", async () => {
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

  it("is not printed when it is wrong", async () => {
    const { code, out } = await command(["config", ...shipped.flags, "--set", "server.workers=x"]);
    expect({ code, out }).toEqual({ code: 78, out: "" });
    expect((await command(["config", "--format", "text"])).code).toBe(2);
  });
});
