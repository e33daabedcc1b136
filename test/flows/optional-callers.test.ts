import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { type HoldingBackend, startHoldingBackend } from "../support/holding-backend.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

/** Limits by subject on routes where a token is optional. */
const limit = { requests: 2, within: "1h", by: "subject" };
const optional = (name: string, more: object) => ({
  name,
  path: `/${name}`,
  upstream: "app",
  auth: "optional",
  ...more,
});

describe("with auth: optional, limits by subject", () => {
  let backend: HoldingBackend;
  let gate: Sallyport;
  let bob: string;
  beforeAll(async () => {
    backend = await startHoldingBackend();
    const password = cheapHash(ALICE.password);
    const users = { users: { alice: { password }, bob: { password } } };
    gate = await startSallyport({
      target: backend.url,
      files: { "users.yaml": JSON.stringify(users) },
      config: {
        server: { trustedProxies: ["127.0.0.1"] },
        routes: [
          optional("rate", { rateLimit: limit }),
          optional("watched", { rateLimit: limit, mode: "monitor" }),
          optional("flight", { concurrency: { requests: 1, by: "subject" } }),
        ],
      },
    });
    bob = await gate.login("bob", ALICE.password);
  });
  afterAll(async () => {
    await gate[Symbol.asyncDispose]();
    await backend[Symbol.asyncDispose]();
  });

  const statusOf = async (path: string, client: string, token?: string): Promise<number> => {
    const headers = { "x-forwarded-for": client };
    return (await ask(gate, path, { headers, ...(token === undefined ? {} : { token }) })).status;
  };
  const three = async (path: string, client: string, token?: string): Promise<number[]> => [
    await statusOf(path, client, token),
    await statusOf(path, client, token),
    await statusOf(path, client, token),
  ];

  it("count callers with a token by subject, and anonymous ones by address", async () => {
    const refused = [200, 200, 429];
    expect(await three("/rate", "203.0.113.1")).toEqual(refused);
    // Neighbours behind the same address have limits of their own, which follow them to another address.
    expect(await three("/rate", "203.0.113.1", gate.token)).toEqual(refused);
    expect(await three("/rate", "203.0.113.1", bob)).toEqual(refused);
    expect(await statusOf("/rate", "203.0.113.2", gate.token)).toBe(429);
    expect(await three("/rate", "203.0.113.2")).toEqual(refused);
    // A bad token is refused, and uses up nobody's limit.
    expect(await three("/rate", "203.0.113.3", "forged")).toEqual([401, 401, 401]);
    expect(await statusOf("/rate", "203.0.113.3")).toBe(200);
    const headers = { "x-forwarded-for": "203.0.113.4" };
    const answer = await ask(gate, "/rate", { headers });
    expect(answer.headers["ratelimit"]).toBe('"rate";r=1;t=1800');
  });

  it("count a caller whose bad token is only watched as anonymous", async () => {
    expect(await three("/watched", "203.0.113.5", "forged")).toEqual([200, 200, 200]);
    const exceeded = () => gate.log().filter(({ reason }) => reason === "rate_limited");
    await statusOf("/watched", "203.0.113.5");
    await until(() => exceeded().some(({ path }) => path === "/watched"));
  });

  it("count requests in flight alike", async () => {
    const tokens = { alice: gate.token, bob, nobody: undefined };
    const asking = (path: string, token: string | undefined) =>
      ask(gate, path, token === undefined ? {} : { token });
    const held = Object.entries(tokens).map(([who, token]) => asking(`/flight/hold/${who}`, token));
    await until(() => backend.held().length === 3);
    for (const token of Object.values(tokens)) {
      expect((await asking("/flight/x", token)).status).toBe(429);
    }
    for (const path of backend.held()) backend.release(path);
    for (const { status } of await Promise.all(held)) expect(status).toBe(200);
  });
});
