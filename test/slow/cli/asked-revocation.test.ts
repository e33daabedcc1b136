/** Revocations live in the running proxy: commands that judge a token ask it, or say that they did not. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { closedPort } from "../../support/dead-ends.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { command, type Ended, keysCommand } from "../../cli/command.ts";

const stack = new AsyncDisposableStack();
let gate: Sallyport;
beforeAll(async () => {
  const keys = join(stack.use(await temporaryDirectory()).path, "keys");
  await keysCommand("generate", "-d", keys);
  gate = stack.use(
    await startSallyport({ target: "http://127.0.0.1:1", config: { tokens: { keys } } }),
  );
}, 60_000);
afterAll(() => stack.disposeAsync());

interface Judged {
  readonly inspect: Ended;
  readonly explain: Ended;
}

async function judged(token: string, admin = `127.0.0.1:${gate.adminPort}`): Promise<Judged> {
  const config = ["--config", join(gate.directory, "config.yaml")];
  const flags = [...config, "--set", `admin.listen=${admin}`, "--token", token];
  const { port } = gate;
  return {
    inspect: await command(["token", "inspect", ...flags]),
    explain: await command(["explain", ...flags, "--url", `https://127.0.0.1:${port}/orders`]),
  };
}

async function minted(subject: string): Promise<string> {
  const config = ["--config", join(gate.directory, "config.yaml")];
  const { code, out } = await command(["token", "mint", ...config, "--subject", subject]);
  expect(code).toBe(0);
  return out.trim();
}

const revoke = (query: string) =>
  ask({ port: gate.adminPort }, `/-/revoke?${query}`, { method: "POST" });

function claimsOf(token: string): { readonly jti: string } {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
}

describe("token inspect and explain", () => {
  it("say that the running proxy does not revoke the token", async () => {
    const { inspect, explain } = await judged(gate.token);
    for (const { code, out, err } of [inspect, explain]) {
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toContain(`it is not revoked, says http://127.0.0.1:${gate.adminPort}`);
    }
  });

  it.each([
    ["jti", (token: string) => `jti=${claimsOf(token).jti}`],
    ["subject", () => "subject=holder-of-subject"],
    ["before", () => `before=${new Date(Date.now() + 60_000).toISOString()}`],
  ])("refuse a token that only the running proxy has revoked, by %s", async (name, query) => {
    const token = await minted(`holder-of-${name}`);
    expect((await judged(token)).inspect.code).toBe(0);
    await revoke(query(token));
    expect((await ask(gate, "/orders", { token })).status).toBe(401);
    const { inspect, explain } = await judged(token);
    expect(inspect.code).toBe(1);
    expect(inspect.out).toContain("not accepted here: revoked");
    expect(explain.code).toBe(1);
    expect(explain.out).toMatch(/refused with 401: revoked/);
  });

  it("say that nobody was asked if nobody answers, or somebody else", async () => {
    const other = createServer((_, response) => response.end('{"message":"hello"}'));
    const silent = createServer(() => undefined);
    await using servers = new AsyncDisposableStack();
    for (const server of [other, silent]) {
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      servers.defer(() => server.closeAllConnections());
      servers.use(server);
    }
    const at = (server: typeof other): string =>
      `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const token = await minted("zoe");
    for (const [admin, why] of [
      [`127.0.0.1:${await closedPort()}`, /ECONNREFUSED/],
      ["off", /admin is off/],
      [at(other), /another program/],
      [at(silent), /no answer/],
    ] as const) {
      const set = admin === "off" ? judgedWithoutAdmin : judged;
      const { inspect, explain } = await set(token, admin);
      for (const each of [inspect, explain]) {
        expect(each).toMatchObject({ code: 0, err: "" });
        expect(each.out).toMatch(/^ +\S revocation +not checked: /m);
        expect(each.out).toMatch(why);
        expect(each.out).not.toContain("it is not revoked");
      }
    }
  });

  it("send no token to the admin listener", async () => {
    const heard: string[] = [];
    await using server = createServer((request, response) => {
      heard.push(`${request.url} ${request.rawHeaders.join(" ")}`);
      response.end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    await judged(gate.token, `127.0.0.1:${(server.address() as AddressInfo).port}`);
    expect(heard.length).toBeGreaterThan(0);
    expect(heard.join("\n")).not.toContain(gate.token.split(".")[1]);
    expect(heard.join("\n")).not.toContain(gate.token.split(".")[2]);
  });

  it("say so in the help", async () => {
    for (const name of ["token", "explain"]) {
      expect((await command([name, "--help"])).out).toMatch(/asks? the running proxy/);
    }
  });
});

async function judgedWithoutAdmin(token: string): Promise<Judged> {
  const config = ["--config", join(gate.directory, "config.yaml"), "--set", "admin=off"];
  return {
    inspect: await command(["token", "inspect", ...config, "--token", token]),
    explain: await command(["explain", ...config, "--token", token, "--url", "https://a/orders"]),
  };
}

describe("GET /-/revoked", () => {
  const page = async (query: string) => {
    const { status, body } = await ask({ port: gate.adminPort }, `/-/revoked?${query}`);
    return { status, ...(JSON.parse(body) as object) };
  };

  it("tells by which kind a token is revoked", async () => {
    await revoke("jti=gone");
    await revoke("subject=carol&before=2026-01-01T00:00:00Z");
    const query = "subject=dora&issuer=sallyport&iat=4000000000";
    expect(await page(`${query}&jti=gone`)).toMatchObject({ revoked: true, by: "token" });
    expect(await page(`${query}&jti=other`)).toMatchObject({ status: 200, revoked: false });
    const carol = "subject=carol&issuer=sallyport";
    expect(await page(`${carol}&iat=1`)).toMatchObject({ revoked: true, by: "subject" });
    expect(await page(`${carol}&iat=4000000000`)).toMatchObject({ revoked: false });
  });

  it("refuses a query that names no token", async () => {
    for (const query of ["", "jti=x", "subject=a", "subject=a&issuer=b&iat=soon", "token=x"]) {
      expect(await page(query)).toMatchObject({ status: 400, success: false });
    }
  });
});
