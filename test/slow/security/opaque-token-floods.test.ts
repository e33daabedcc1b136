/**
 * The attack: one client sends hundreds of concurrent opaque tokens that were never issued, all different. Each leads
 * to a query to the identity provider, so that the tokens of others wait, or are refused because too many queries are
 * in flight; and cached results for the tokens of others are evicted.
 */
import { Agent } from "node:https";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { RefusedTokens } from "../../../src/tokens/remote/remote-verification.ts";
import { ask } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { type RemoteServer, startRemoteServer } from "../../support/remote-server.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

/** More than may be in flight for all clients together. */
const FLOOD = 300;
/** The concurrent queries for the tokens of one client; and those including waiting ones. */
const AT_ONCE = 8;
const WAITING = 64;

let backend: EchoBackend;
let provider: RemoteServer;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  provider = await startRemoteServer(({ body }) => {
    const token = new URLSearchParams(body).get("token") ?? "";
    if (token.startsWith("garbage")) return "hang";
    return { body: { active: token.startsWith("good"), sub: "zoe" } };
  });
  const client = { clientId: "sallyport", clientSecret: "secret" };
  const introspection = { url: provider.url, ...client, cache: "30s", timeout: "3s" };
  gate = await startSallyport({
    target: backend.url,
    config: {
      server: { limits: { connectionsPerAddress: 1_000 } },
      tokens: { trusted: [{ issuer: "opaque", introspection }] },
    },
  });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), provider.close()]);
});

it("leaves room for the queries for other clients' tokens", async () => {
  const garbage = (): number =>
    provider.asked.filter(({ body }) => body.includes("garbage")).length;
  const flood = Array.from({ length: FLOOD }, (_, index) =>
    ask(gate, "/x", { token: `garbage-${index}` }),
  );
  await until(() => garbage() === AT_ONCE);
  const other = new Agent({ localAddress: "127.0.0.2" });
  onTestFinished(() => other.destroy());
  const { status } = await ask(gate, "/x", { token: "good-1", agent: other });
  const answers = await Promise.all(flood);
  expect(status).toBe(200);
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([503]));
  expect(garbage()).toBeLessThanOrEqual(WAITING);
}, 60_000);

it("evicts only cached refusals of its own client", () => {
  let now = 0;
  const clock = { now: () => now, monotonic: () => now };
  const refused = new RefusedTokens(clock);
  for (let other = 0; other < 5; other += 1)
    refused.add(`known-${other}`, `client-${other}`, 5_000);
  for (let index = 0; index < 50_000; index += 1) refused.add(`flood-${index}`, "attacker", 5_000);
  expect(refused.size).toBe(1_005);
  for (let other = 0; other < 5; other += 1) expect(refused.has(`known-${other}`)).toBe(true);
  expect([refused.has("flood-0"), refused.has("flood-49999")]).toEqual([false, true]);
  for (let index = 0; index < 50_000; index += 1)
    refused.add(`crowd-${index}`, `of-${index}`, 5_000);
  expect(refused.size).toBe(10_000);
  now = 5_001;
  expect(refused.has("crowd-49999")).toBe(false);
});
