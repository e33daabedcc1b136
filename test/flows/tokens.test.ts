import { Agent } from "node:https";
import { chmod } from "node:fs/promises";
import { calculateJwkThumbprint } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, fieldsOf, type Answer } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { logLine } from "../support/log-line.ts";
import { exchange, request } from "../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const MISSING = 'Bearer realm="sallyport"';
const INVALID = 'Bearer realm="sallyport", error="invalid_token"';

const pair = signingPair("");
const own = { privateKey: pair.privateKey, kid: await calculateJwkThumbprint(pair.jwk) };
const stranger = { privateKey: signingPair("").privateKey, kid: own.kid };
const unknown = signingPair("unknown");

const stack = new AsyncDisposableStack();
let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  const keys = stack.use(await temporaryDirectory());
  const pem = pair.privateKey.export({ format: "pem", type: "pkcs8" });
  await chmod(await keys.write("one.pem", pem), 0o600);
  backend = stack.use(await startEchoBackend());
  const config = { tokens: { keys: keys.path } };
  gate = stack.use(await startSallyport({ target: backend.url, config }));
});
afterAll(() => stack.disposeAsync());

const now = (): number => Math.floor(Date.now() / 1000);
const claims = (more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  iss: "sallyport",
  aud: "sallyport",
  sub: "mallory",
  groups: [],
  jti: "1",
  iat: now() - 10,
  exp: now() + 600,
  ...more,
});

function expectRefused(answer: Pick<Answer, "status" | "headers" | "body">, challenge: string) {
  expect(answer.status).toBe(401);
  expect(answer.headers["www-authenticate"]).toBe(challenge);
  expect(answer.headers["content-type"]).toBe("application/json");
  expect(answer.headers["cache-control"]).toBe("no-store");
  expect(answer.headers["proxy-status"]).toBeUndefined();
  expect(fieldsOf(answer)).toEqual({
    id: expect.toSatisfy(Number.isSafeInteger),
    message: "Full authentication is required to access this resource",
    success: false,
  });
}

describe("without a token", () => {
  it.each([
    ["nothing", {}],
    ["an empty header", { authorization: "" }],
    ["another scheme", { authorization: "Basic YWxpY2U6eA==" }],
    ["only a token in the query", {}],
    ["only a cookie", { cookie: "token=x" }],
  ])("gets 401 without an error code: %s", async (name, headers) => {
    const path = name.includes("query") ? `/orders?access_token=${gate.token}` : "/orders";
    expectRefused(await ask(gate, path, { headers }), MISSING);
  });
});

describe("an invalid token", () => {
  const CASES: readonly (readonly [name: string, reason: string, token: () => unknown])[] = [
    ["malformed", "malformed", () => "abc"],
    ["empty", "malformed", () => ""],
    ["with a space in it", "malformed", () => `${gate.token} x`],
    ["padded", "malformed", () => `${gate.token}=`],
    ["too long", "too_large", () => `${gate.token}${"A".repeat(9000)}`],
    ["expired", "expired", () => signToken(own, claims({ exp: now() - 1 }))],
    ["not yet valid", "not_yet_valid", () => signToken(own, claims({ nbf: now() + 60 }))],
    ["without exp", "no_expiry", () => signToken(own, claims({ exp: undefined }))],
    ["of another issuer", "issuer", () => signToken(own, claims({ iss: "other" }))],
    ["for another audience", "audience", () => signToken(own, claims({ aud: "other" }))],
    ["signed with another key", "signature", () => signToken(stranger, claims())],
    ["with an unknown key", "unknown_key", () => signToken(unknown, claims())],
    ["without signature", "malformed", () => gate.token.replace(/[^.]*$/, "")],
  ];

  it.each(CASES)("gets 401 with invalid_token: %s", async (_name, reason, token) => {
    const authorization = `Bearer ${String(await token())}`;
    const answer = await ask(gate, "/orders", { headers: { authorization } });
    expectRefused(answer, INVALID);
    const line = await logLine(gate, { id: fieldsOf(answer)["id"] });
    expect(line).toMatchObject({ status: 401, auth: "denied", reason });
  });

  it("gets identical responses except for the id, whatever is wrong with it", async () => {
    const bodies = await Promise.all(
      CASES.map(async ([, , token]) => {
        const headers = { authorization: `Bearer ${String(await token())}` };
        return (await ask(gate, "/orders", { headers })).body.replace(/"id":\d+/, "");
      }),
    );
    expect(new Set(bodies).size).toBe(1);
  });

  it("includes two Authorization fields, even if both are valid", async () => {
    const authorization = `Authorization: Bearer ${gate.token}`;
    const lines = ["GET /orders HTTP/1.1", "Host: a", authorization, authorization];
    const { last } = await exchange(gate, request(lines));
    const headers = Object.fromEntries(
      last.headers.map(([key, value]) => [key.toLowerCase(), value]),
    );
    expectRefused({ status: last.status, headers, body: last.body }, INVALID);
  });

  it("never reaches the backend", () => {
    expect(backend.requests.filter(({ url }) => url.startsWith("/orders"))).toEqual([]);
  });
});

describe("a valid token", () => {
  it.each(["Bearer", "bearer", "BEARER", "bEaReR"])("is accepted after %s", async (scheme) => {
    const headers = { authorization: `${scheme} ${gate.token}` };
    expect((await ask(gate, "/x", { headers })).status).toBe(200);
  });

  it("may be issued by another holder of the key", async () => {
    const token = await signToken(own, claims());
    const answer = await ask(gate, "/x", { token });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBe("mallory");
  });

  it("expires exactly at exp, cached or not", async () => {
    const exp = now() + 2;
    const token = await signToken(own, claims({ exp }));
    let accepted = 0;
    await until(async () => {
      const sentAt = Date.now();
      const { status } = await ask(gate, "/x", { token });
      if (status === 401) {
        expect(Date.now()).toBeGreaterThanOrEqual(exp * 1000);
        return true;
      }
      expect(status).toBe(200);
      expect(sentAt).toBeLessThan(exp * 1000);
      accepted += 1;
      return false;
    });
    expect(accepted).toBeGreaterThan(1);
    expect((await ask(gate, "/x", { token })).status).toBe(401);
  });

  it("is verified once for 2,000 requests", async () => {
    const token = await gate.login("alice", "correct horse battery staple");
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    const before = await scrape(gate);
    const statuses = [(await ask(gate, "/x", { token, agent })).status];
    const rest = Array.from({ length: 1999 }, () => ask(gate, "/x", { token, agent }));
    statuses.push(...(await Promise.all(rest)).map(({ status }) => status));
    agent.destroy();
    expect(statuses.filter((status) => status === 200).length).toBe(2000);
    const after = await scrape(gate);
    const grown = (result: string): number => {
      const series = `sallyport_token_cache_requests_total{result="${result}"}`;
      return Number(after.value(series)) - Number(before.value(series));
    };
    expect(grown("miss")).toBe(1);
    expect(grown("hit")).toBe(1999);
    const entries = "sallyport_token_cache_entries";
    expect(Number(after.value(entries)) - Number(before.value(entries))).toBe(1);
  });

  it("that is forged is counted when it is sent again", async () => {
    const token = await signToken(stranger, claims({ sub: "mallory" }));
    const counted = async (result: string): Promise<number> =>
      (await scrape(gate)).sum("sallyport_token_cache_requests_total", `result="${result}"`);
    const [forged, misses] = [await counted("forged"), await counted("miss")];
    for (let sent = 0; sent < 3; sent += 1) {
      expect((await ask(gate, "/x", { token })).status).toBe(401);
    }
    expect([await counted("forged"), await counted("miss")]).toEqual([forged + 2, misses + 1]);
  });
});

describe("with tokens.errorDescription", () => {
  it("the challenge says what is wrong with a token, but nothing about a missing one", async () => {
    const config = { tokens: { errorDescription: true } };
    await using verbose = await startSallyport({ withoutToken: true, target: backend.url, config });
    const challenge = async (token?: string): Promise<unknown> =>
      (await ask(verbose, "/x", token === undefined ? {} : { token })).headers["www-authenticate"];
    const described = (what: string): string => `${INVALID}, error_description="${what}"`;
    expect(await challenge()).toBe(MISSING);
    expect(await challenge("x.y.z")).toBe(described("The token is malformed"));
    expect(await challenge(await signToken(own, claims({ exp: now() - 1 })))).toBe(
      described("The token has expired"),
    );
    expect(await challenge(await signToken(own, claims({ aud: 'of"others"' })))).toBe(
      described("The token is for another audience"),
    );
    expect(await challenge(await signToken(unknown, claims()))).toBe(
      described("The key that signed the token is not known"),
    );
    expectRefused(
      await ask(verbose, "/x", { token: await signToken(own, claims({ iss: "nobody" })) }),
      described("The issuer is not accepted"),
    );
  });
});
