/**
 * The attack: one caller sends hundreds of concurrent requests that the authorization server decides slowly, all
 * different, so that the queries for all other callers wait behind them, or are refused because too many are in flight.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { type RemoteServer, startRemoteServer } from "../../support/remote-server.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

/** More than may be in flight for all callers together. */
const FLOOD = 300;
/** The concurrent queries for one caller, half of the connections; and those including waiting ones. */
const AT_ONCE = 16;
const WAITING = 128;

let backend: EchoBackend;
let server: RemoteServer;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  server = await startRemoteServer(({ body }) => {
    const { path } = JSON.parse(body) as { path: string };
    return path.startsWith("/slow") ? "hang" : { body: {} };
  });
  const users = {
    alice: { password: cheapHash(ALICE.password) },
    bob: { password: cheapHash("b") },
  };
  gate = await startSallyport({
    target: backend.url,
    files: { "users.yaml": JSON.stringify({ users }) },
    config: {
      server: { limits: { connectionsPerAddress: 1_000 } },
      authorization: { opa: { kind: "http", url: server.url, timeout: "3s", cache: "0s" } },
      routes: [{ name: "all", path: "/", upstream: "app", authorize: "opa" }],
    },
  });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), server.close()]);
});

it("leaves room for the queries for other callers", async () => {
  const bob = await gate.login("bob", "b");
  const slow = (): number => server.asked.filter(({ body }) => body.includes("/slow")).length;
  const flood = Array.from({ length: FLOOD }, (_, index) =>
    ask(gate, `/slow/${index}`, { token: gate.token }),
  );
  await until(() => slow() === AT_ONCE);
  const { status } = await ask(gate, "/quick", { token: bob });
  expect(status).toBe(200);
  const answers = await Promise.all(flood);
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([503]));
  expect(slow()).toBeLessThanOrEqual(WAITING);
}, 60_000);
