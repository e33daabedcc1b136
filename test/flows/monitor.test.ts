import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const ISSUER = "https://idp.example.com";
let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    config: {
      tokens: {
        trusted: [
          {
            issuer: ISSUER,
            audience: "orders",
            algorithms: ["ES256"],
            jwks: { url: "http://127.0.0.1:1/jwks.json" },
          },
        ],
      },
      routes: [
        { name: "watched", path: "/watched/", mode: "monitor", upstream: "app" },
        {
          name: "grouped",
          path: "/grouped/",
          mode: "monitor",
          upstream: "app",
          require: { groups: { any: ["nobody"] } },
        },
        {
          name: "by-address",
          path: "/by-address/",
          mode: "monitor",
          upstream: "app",
          rateLimit: { requests: 2, within: "1h", by: "address" },
        },
        {
          name: "by-subject",
          path: "/by-subject/",
          mode: "monitor",
          upstream: "app",
          require: { groups: { any: ["nobody"] } },
          rateLimit: { requests: 2, within: "1h", by: "subject" },
        },
        { name: "everything", path: "/", upstream: "app" },
      ],
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

describe("a route with mode: monitor", () => {
  it.each<[string, Record<string, string>, string, string]>([
    ["no token", {}, "missing", "/watched/1"],
    ["garbage", { authorization: "Bearer a.b.c" }, "malformed", "/watched/2"],
    [
      "a forged identity",
      { "x-auth-subject": "admin", X_Auth_Groups: "admin" },
      "missing",
      "/watched/3",
    ],
  ])(
    "forwards a request with %s without identity, and logs why it would be refused",
    async (_, headers, reason, path) => {
      const before = await scrape(gate);
      const answer = await ask(gate, path, { headers });
      expect(answer.status).toBe(200);
      const got = echoedBy(answer);
      for (const name of ["x-auth-subject", "x-auth-groups", "x_auth_groups"]) {
        expect(got.header(name)).toBeUndefined();
      }
      const line = () => gate.log().findLast((each) => each["path"] === path);
      await until(() => line()?.["auth"] === "would_deny");
      expect(line()).toMatchObject({ auth: "would_deny", reason, status: 200, source: "upstream" });
      const series = `sallyport_auth_decisions_total{result="would_deny",reason="${reason}"}`;
      expect((await scrape(gate)).value(series)).toBe((before.value(series) ?? 0) + 1);
    },
  );

  it("forwards a caller without the group, without identity", async () => {
    const answer = await ask(gate, "/grouped/x", { token: gate.token });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBeUndefined();
    const line = () => gate.log().findLast(({ path }) => path === "/grouped/x");
    await until(() => line()?.["auth"] === "would_deny");
    expect(line()).toMatchObject({ reason: "forbidden", subject: "alice" });
  });

  it("sends the caller's identity to the backend when the token is valid", async () => {
    const answer = await ask(gate, "/watched/y", { token: gate.token });
    expect(echoedBy(answer).header("x-auth-subject")).toBe("alice");
  });

  it("does not enforce a rate limit: logs the excess and forwards it with the identity", async () => {
    const series = 'sallyport_auth_decisions_total{result="would_deny",reason="rate_limited"}';
    const before = (await scrape(gate)).value(series) ?? 0;
    const answers = [];
    for (let turn = 0; turn < 5; turn++) {
      answers.push(await ask(gate, `/by-address/${turn}`, { token: gate.token }));
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    for (const answer of answers) {
      expect(echoedBy(answer).header("x-auth-subject")).toBe("alice");
    }
    const line = (turn: number) =>
      gate.log().findLast(({ path }) => path === `/by-address/${turn}`);
    await until(() => line(4) !== undefined);
    expect(line(1)).toMatchObject({ auth: "allowed" });
    expect(line(2)).toMatchObject({ auth: "would_deny", reason: "rate_limited", status: 200 });
    expect((await scrape(gate)).value(series)).toBe(before + 3);
  });

  it("counts callers without the group against the rate limit", async () => {
    const remaining = [];
    for (let turn = 0; turn < 3; turn++) {
      const { status, headers } = await ask(gate, "/by-subject/x", { token: gate.token });
      expect(status).toBe(200);
      remaining.push(headers["ratelimit"]);
    }
    expect(remaining).toMatchObject([
      expect.stringContaining("r=1"),
      expect.stringContaining("r=0"),
      expect.stringContaining("r=0"),
    ]);
  });

  it("forwards without identity a token that it cannot verify because the issuer's keys are missing", async () => {
    const pair = signingPair("out-of-reach");
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: ISSUER, aud: "orders", sub: "zoe", iat: now, exp: now + 600 };
    const token = await signToken(pair, claims);
    const answer = await ask(gate, "/watched/keys", { token });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBeUndefined();
    const line = () => gate.log().findLast(({ path }) => path === "/watched/keys");
    await until(() => line() !== undefined);
    expect(line()).toMatchObject({ auth: "would_deny", reason: "keys_unusable" });
    expect((await ask(gate, "/other", { token })).status).toBe(503);
  });

  it("still refuses ambiguous requests", async () => {
    expect((await ask(gate, "/watched/..%2fx")).status).toBe(400);
  });
});

it("other routes still refuse", async () => {
  expect((await ask(gate, "/other")).status).toBe(401);
});

it("logs a warning with the monitored routes at startup", () => {
  const lines = gate.log().filter(({ level, routes }) => level === "warn" && routes !== undefined);
  expect(lines).toMatchObject([{ routes: ["watched", "grouped", "by-address", "by-subject"] }]);
});
