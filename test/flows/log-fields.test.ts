/** Custom fields in the access log: request headers and token claims, but never a secret. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { closedPort } from "../support/dead-ends.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";

const ISSUER = "https://id.example.com";
const pair = signingPair("foreign");
const JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl";

const FIELDS = {
  user_agent: "header:User-Agent",
  from: "header:referer",
  accept: "header:ACCEPT",
  tenant: "claim:tenant.id",
  roles: "claim:roles",
  verified: "claim:email_verified",
};

let backend: EchoBackend;
/** For tests that change nothing. */
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await start();
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const start = (log: object = { fields: FIELDS }): Promise<Sallyport> =>
  startSallyport({
    target: backend.url,
    files: { "jwks.json": JSON.stringify({ keys: [pair.jwk] }) },
    config: {
      log,
      tokens: {
        trusted: [
          {
            issuer: ISSUER,
            audience: "orders",
            algorithms: ["ES256"],
            jwks: { file: "jwks.json" },
          },
        ],
      },
    },
  });

function tokenWith(claims: object): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const times = { iat: now, exp: now + 600 };
  return signToken(pair, { iss: ISSUER, aud: "orders", sub: "zoe", ...times, ...claims });
}

async function lineOf(gate: Sallyport, path: string): Promise<Readonly<Record<string, unknown>>> {
  const found = () => gate.log().find((line) => line["path"] === path);
  await expect.poll(found).toBeDefined();
  return found() ?? {};
}

describe("log.fields", () => {
  it("are headers and claims, after the standard fields", async () => {
    const token = await tokenWith({
      tenant: { id: "acme" },
      roles: ["a", "b"],
      email_verified: true,
    });
    const headers = { "user-agent": "curl/8", referer: "https://a.example/b?code=secret#c" };
    await ask(gate, "/all", { token, headers });
    const line = await lineOf(gate, "/all");
    expect(Object.entries(line).slice(-5)).toEqual([
      ["user_agent", "curl/8"],
      ["from", "https://a.example/b"],
      ["tenant", "acme"],
      ["roles", "a,b"],
      ["verified", "true"],
    ]);
  });

  it("are logged for refused requests, without claims of an invalid token", async () => {
    const token = await tokenWith({ tenant: { id: "acme" }, exp: 1 });
    await ask(gate, "/expired", { token, headers: { "user-agent": "evil" } });
    expect(await lineOf(gate, "/expired")).toMatchObject({ status: 401, user_agent: "evil" });
    expect(await lineOf(gate, "/expired")).not.toHaveProperty("tenant");
    await ask(gate, "//twice", { headers: { "user-agent": "odd" } });
    expect(await lineOf(gate, "//twice")).toMatchObject({ status: 400, user_agent: "odd" });
  });

  it("are bounded, escaped and masked", async () => {
    const headers = {
      "user-agent": `\u001b[2J "${JWT}" ${"x".repeat(4000)}`,
      accept: `${"y".repeat(505)} ${JWT} Bearer abcdefgh`,
    };
    await ask(gate, "/hostile", { token: gate.token, headers: { accept: headers.accept } });
    const { accept } = await lineOf(gate, "/hostile");
    expect(String(accept)).toMatch(/^y{505} \[redac…$/);
    await ask(gate, "/long", {
      headers: { "user-agent": headers["user-agent"].replace("\u001b", "") },
    });
    const { user_agent: agent } = await lineOf(gate, "/long");
    expect(String(agent)).toContain('"[redacted]"');
    expect(String(agent)).toHaveLength(513);
  });

  it("change with a reload", async () => {
    await using gate = await start();
    const file = join(gate.directory, "config.yaml");
    const before = await readFile(file, "utf8");
    await writeFile(file, before.replace('"tenant"', '"customer"'));
    gate.signal("SIGHUP");
    const reloads = () => gate.log().find(({ msg }) => msg === "the configuration was reloaded");
    await expect.poll(reloads).toBeDefined();
    const token = await tokenWith({ tenant: { id: "acme" } });
    await ask(gate, "/reloaded", { token });
    expect(await lineOf(gate, "/reloaded")).toMatchObject({ customer: "acme" });
  });

  it("appear only for errors with access: errors", async () => {
    await using gate = await start({ fields: FIELDS, access: "errors" });
    await ask(gate, "/fine", { token: gate.token, headers: { "user-agent": "a" } });
    await ask(gate, "/refused", { headers: { "user-agent": "b" } });
    expect(await lineOf(gate, "/refused")).toMatchObject({ user_agent: "b" });
    expect(gate.log().filter((line) => line["path"] === "/fine")).toEqual([]);
  });

  it.each(["off", "on"])("are facts about the request, with TLS %s", async (tls) => {
    const fields = { scheme: "request:scheme", tls: "request:tls_version", n: "request:attempts" };
    // Nothing listens there, so the request goes to the other target.
    const target = `http://127.0.0.1:${await closedPort()}`;
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        log: { fields },
        ...(tls === "off" && { server: { tls } }),

        upstreams: { app: { targets: [target, backend.url] } },
        routes: [
          { name: "two", path: "/two/", upstream: "app" },
          { name: "all", path: "/", upstream: "app" },
        ],
      },
    });
    const paths = ["/two/1", "/two/2"];
    for (const path of paths)
      expect((await ask(gate, path, { token: gate.token })).status).toBe(200);
    const lines = await Promise.all(paths.map((path) => lineOf(gate, path)));
    const [scheme, version] = tls === "off" ? ["http", undefined] : ["https", "TLSv1.3"];
    for (const line of lines) expect([line["scheme"], line["tls"]]).toEqual([scheme, version]);
    expect(new Set(lines.map((line) => line["n"]))).toEqual(new Set(["1", "2"]));
    await ask(gate, "/nobody");
    expect(await lineOf(gate, "/nobody")).toMatchObject({ status: 401, n: "0" });
  });
});
