/**
 * The attack: names of users are read off the answers while a later store is down. A name of the users file got 401, every
 * other name 503. Both get the same, also once the throttle refuses; the right password still logs in.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type LoginServer, startLoginServer } from "../credentials/login-server.ts";
import { askLogin, fieldsOf } from "../support/ask.ts";
import { logLine } from "../support/log-line.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";

const WRONG = "any wrong password";
const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

let logins: LoginServer;
let gate: Sallyport;
beforeAll(async () => {
  logins = stack.use(await startLoginServer());
  gate = stack.use(
    await startSallyport({
      target: "http://127.0.0.1:9",
      config: {
        server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
        users: [
          { kind: "file", path: "users.yaml" },
          {
            kind: "http",
            url: `${logins.url}/json`,
            timeout: "5s",
            fields: { username: "user", password: "pass" },
            status: { unknown: [404], wrong: [401] },
          },
        ],
      },
    }),
  );
});

/** All that the client gets, without what is new in each answer. */
async function told(username: string, password: string, from: string) {
  const answer = await askLogin(gate, { username, password }, { "x-forwarded-for": from });
  const { status, headers } = answer;
  const { id, ...fields } = fieldsOf(answer);
  const { date: _date, "x-request-id": _request, "content-length": _length, ...rest } = headers;
  return { id: Number(id), told: { status, fields, rest } };
}

describe("while a later store is down", () => {
  beforeAll(async () => {
    logins.broken = true;
    // From here on, the failure is known.
    expect((await told("nobody", WRONG, "198.51.100.1")).told.status).toBe(503);
  });

  it("a name of an earlier store gets what every other name gets, however often", async () => {
    const from = "198.51.100.2";
    for (let attempt = 0; attempt < 8; attempt += 1) {
      const known = await told(ALICE.username, WRONG, from);
      expect(known.told.status).toBe(503);
      expect(known.told).toEqual((await told("nobody", WRONG, from)).told);
      // The operator sees the reason, and the throttle counts: five failures lead to a ban.
      const reason = attempt < 5 ? "bad_credentials" : "throttled";
      expect(await logLine(gate, { id: known.id })).toMatchObject({ status: 503, reason });
    }
    expect((await told(ALICE.username, ALICE.password, from)).told.status).toBe(503);
  });

  it("the right password of an earlier store logs in", async () => {
    const { status } = (await told(ALICE.username, ALICE.password, "198.51.100.3")).told;
    expect(status).toBe(200);
  });
});

it("once it is back, every wrong password gets 401, and a ban 429", async () => {
  logins.broken = false;
  const from = "198.51.100.4";
  expect((await told("nobody", WRONG, from)).told.status).toBe(401);
  const known = await told(ALICE.username, WRONG, from);
  expect(known.told).toEqual((await told("nobody", WRONG, from)).told);
  expect(known.told.status).toBe(401);
  const banned = await told(ALICE.username, ALICE.password, "198.51.100.2");
  expect(banned.told.status).toBe(429);
});
