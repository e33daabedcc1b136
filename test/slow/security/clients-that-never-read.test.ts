/**
 * Clients that never read. A client requests something large and does not read it. The proxy stops reading from the
 * backend, as it should, and then the client, the proxy and the backend all wait, and the request still counts against
 * the backend's limit. No timeout of Node ends that, since nothing counts as idle: the client has sent its
 * request, and the response is paused. A few hundred such connections leave none to the backend (slowhttptest's "slow
 * read").
 *
 * Sallyport closes a connection with a request that moves no byte in either direction for longer than any of the
 * configured timeouts.
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

/** Requests something large and reads none of it. */
async function askWithoutReading(peer: Peer): Promise<Socket> {
  const socket = (await openSocket(peer)).pause();
  socket.write(request(["GET /public/big?bytes=200000000 HTTP/1.1", ...HEAD]));
  return socket;
}

it("lose their connection, which frees the backend, while an unmodified http-proxy-3 keeps both open", async () => {
  await using held = await startEchoBackend();
  await using naive = await startNaiveProxy(held.url);
  const unread = await askWithoutReading(naive);
  await until(() => held.requests.length === 1);
  const socket = await askWithoutReading(gate);
  const closed = once(socket, "close");
  // Node gives a pending write a second timeout period (`net.Socket`), so up to twice three seconds.
  await until(() => gate.log().some(({ path }) => path === "/public/big"), 20_000);
  const line = await logLine(gate, { path: "/public/big" });
  expect(line).toMatchObject({ status: 200, reason: "stalled" });
  await until(() => backend.abandoned() === 1);
  socket.resume();
  await closed;
  // Requested before the other one, and still open.
  expect([held.abandoned(), unread.closed]).toEqual([0, false]);
  unread.destroy();
  await until(() => held.abandoned() === 1);
}, 30_000);

it("do not affect a connection that moves bytes", async () => {
  const slow = request(["GET /public/slow?ms=400 HTTP/1.1", ...HEAD]);
  expect((await exchange(gate, slow)).last.status).toBe(200);
});
