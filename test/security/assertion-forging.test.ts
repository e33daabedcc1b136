/**
 * The attack: a client sends its own `X-Auth-Assertion` to a backend that trusts the header: in another spelling, on
 * a route that adds none, on a public route, or in an upgrade. Or a client sends an assertion, which every backend
 * receives, to Sallyport as a token.
 */
import { createRemoteJWKSet, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    config: {
      tokens: { assertion: { audience: "backend", header: "X-Caller" } },
      routes: [
        { name: "public", path: "/public/", auth: "none", upstream: "app" },
        { name: "plain", path: "/plain", upstream: "app" },
        { name: "asserted", path: "/", upstream: "app", assertion: true },
      ],
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const SPELLINGS = ["X-Caller", "x-caller", "X_Caller", "X.Caller", "X-Auth-Assertion"];

describe("an assertion", () => {
  it("is verified with the published keys, and identifies the caller", async () => {
    const answer = await ask(gate, "/orders", { token: gate.token });
    const assertion = echoedBy(answer).header("x-caller") ?? "";
    const keys = new URL(`http://127.0.0.1:${gate.adminPort}/.well-known/jwks.json`);
    const { payload } = await jwtVerify(assertion, createRemoteJWKSet(keys), {
      issuer: "sallyport",
      audience: "backend",
      typ: "assertion+jwt",
    });
    expect(payload).toMatchObject({ sub: "alice", groups: ["sales"], idp: "sallyport" });
    const again = await ask(gate, "/orders", { token: gate.token });
    expect(echoedBy(again).header("x-caller")).toBe(assertion);
  });

  it.each(["/public/x", "/plain", "/orders"])("of a client never reaches %s", async (path) => {
    for (const name of SPELLINGS) {
      const headers = { [name]: "forged" };
      const answer = await ask(gate, path, { token: gate.token, headers });
      expect(answer.status).toBe(200);
      expect(answer.body).not.toContain("forged");
    }
  });

  it("is no token", async () => {
    const answer = await ask(gate, "/orders", { token: gate.token });
    const token = echoedBy(answer).header("x-caller") ?? "";
    expect((await ask(gate, "/orders", { token })).status).toBe(401);
    const refused = () => gate.log().find(({ status }) => status === 401);
    await until(() => refused() !== undefined);
    expect(refused()?.["reason"]).toBe("malformed");
  });

  it("is never accepted as our own token, although the same keys sign it: type and audience differ", async () => {
    const address = new URL(`http://127.0.0.1:${gate.adminPort}/.well-known/jwks.json`);
    const keys = createRemoteJWKSet(address);
    const type = { typ: "assertion+jwt" };
    const audience = { issuer: "sallyport", audience: "backend" };
    await expect(jwtVerify(gate.token, keys, { issuer: "sallyport" })).resolves.toBeDefined();
    await expect(jwtVerify(gate.token, keys, type)).rejects.toThrow('unexpected "typ"');
    await expect(jwtVerify(gate.token, keys, audience)).rejects.toThrow('unexpected "aud"');
  });

  it("is in no log line", async () => {
    const answer = await ask(gate, "/orders", { token: gate.token });
    const assertion = echoedBy(answer).header("x-caller") ?? "";
    const signature = assertion.split(".").at(-1) ?? "";
    expect(signature.length).toBeGreaterThan(80);
    expect(JSON.stringify(gate.log())).not.toContain(signature);
  });
});

it("in Authorization is the only one there, whatever the client sends: the backend might read the first", async () => {
  const issuer = "https://assertions.example";
  const tokenFrom = [{ header: "Authorization", others: "ignore" }, { cookie: "session" }];
  const route = { upstream: "app", assertion: true };
  await using named = await startSallyport({
    target: backend.url,
    config: {
      tokens: { assertion: { audience: "backend", issuer, header: "Authorization" } },
      routes: [
        { name: "kept", path: "/kept", ...route, forwardAuthorization: "keep" },
        { name: "others", path: "/others", ...route, tokenFrom },
        {
          name: "open",
          path: "/open",
          auth: "none",
          upstream: "app",
          forwardAuthorization: "keep",
        },
      ],
    },
  });
  const { token } = named;
  const kept = echoedBy(await ask(named, "/kept", { token })).header("authorization");
  expect(kept).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
  const cookie = `session=${token}`;
  const theirs = { cookie, authorization: "Bearer opaque", "sec-fetch-site": "same-origin" };
  const others = echoedBy(await ask(named, "/others", { headers: theirs }));
  expect(others.header("authorization")).toBe(kept);
  const open = echoedBy(await ask(named, "/open", { headers: { authorization: "Basic YTpi" } }));
  expect(open.header("authorization")).toBe(undefined);
});

it("of ours is no token of others, so it reaches no other backend in their place", async () => {
  const issuer = "https://assertions.example";
  const tokenFrom = [{ header: "Authorization", others: "ignore" }, { cookie: "session" }];
  await using named = await startSallyport({
    target: backend.url,
    config: {
      tokens: { assertion: { audience: "backend", issuer, header: "X-Caller" } },
      routes: [{ name: "others", path: "/", upstream: "app", assertion: true, tokenFrom }],
    },
  });
  const headers = { cookie: `session=${named.token}`, "sec-fetch-site": "same-origin" };
  const first = await ask(named, "/", { headers });
  const assertion = echoedBy(first).header("x-caller") ?? "";
  const again = await ask(named, "/", {
    headers: { ...headers, authorization: `Bearer ${assertion}` },
  });
  expect([again.status, again.body.includes(assertion)]).toEqual([401, false]);
});
