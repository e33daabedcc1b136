/**
 * Clients that never read. Somebody asks for something large and does not take it. The proxy stops reading from the backend,
 * as it should, and then all three wait: the client's connection, the proxy's, and the backend's, which counts against its
 * limit. No time limit of Node's or of undici's ends that, since nobody is idle: the one has sent its request, the other's
 * answer is on hold. A few hundred such connections are a backend without connections (slowhttptest's "slow read").
 *
 * Sallyport ends a connection that carries a request and moves no byte in either direction for longer than any of the
 * configured times allows.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { startNaiveProxy } from "../../support/naive.ts";
import { logLine } from "../../support/log-line.ts";
import { exchange, openSocket, type Peer, request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    config: {
      server: { timeouts: { header: "1s", request: "1s" } },
      upstreams: { app: { timeouts: { connect: "500ms", response: "500ms", idle: "1s" } } },
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const HEAD = ["Host: localhost"];

/** Asks for something large and reads nothing of it. */
async function askWithoutReading(peer: Peer): Promise<Socket> {
  const socket = (await openSocket(peer)).pause();
  socket.write(request(["GET /public/big?bytes=200000000 HTTP/1.1", ...HEAD]));
  return socket;
}

it("lose their connection, and the backend is free again, while http-proxy-3 as it comes still holds on", async () => {
  await using held = await startEchoBackend();
  await using naive = await startNaiveProxy(held.url);
  const unread = await askWithoutReading(naive);
  await until(() => held.requests.length === 1);
  const socket = await askWithoutReading(gate);
  const closed = once(socket, "close");
  // Node gives a write that was under way a second period (`net.Socket`), so up to twice three seconds.
  await until(() => gate.log().some(({ path }) => path === "/public/big"), 20_000);
  const line = await logLine(gate, { path: "/public/big" });
  expect(line).toMatchObject({ status: 200, reason: "stalled" });
  await until(() => backend.abandoned() === 1);
  socket.resume();
  await closed;
  // Asked for earlier than the other, and still there.
  expect([held.abandoned(), unread.closed]).toEqual([0, false]);
  unread.destroy();
  await until(() => held.abandoned() === 1);
}, 30_000);

it("are no reason to end a connection on which bytes move", async () => {
  const slow = request(["GET /public/slow?ms=400 HTTP/1.1", ...HEAD]);
  expect((await exchange(gate, slow)).last.status).toBe(200);
});
