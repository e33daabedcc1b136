/** WebSockets to HTTP/2 backends go over HTTP/1.1, which such a backend may not support. */
import { expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange } from "../support/raw-client.ts";
import { startSallyport } from "../support/sallyport.ts";
import { openWebSocket, startWebSocketBackend } from "../support/websocket.ts";

const HANDSHAKE =
  "GET /public/chat HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

const inFrontOf = (targets: readonly string[]) =>
  startSallyport({
    target: "http://127.0.0.1:9",
    config: { upstreams: { app: { protocol: "h2c", targets, ejection: { failures: 1 } } } },
  });

it("a backend with only HTTP/2 accepts none, and still serves other requests", async () => {
  await using one = await startHttp2Backend();
  await using two = await startHttp2Backend();
  await using gate = await inFrontOf([one.url, two.url]);
  for (let i = 0; i < 6; i += 1) {
    const { last } = await exchange(gate, HANDSHAKE, { responses: Infinity });
    expect(last.status).toBe(502);
    expect(last.body).toContain(
      "The service behind this address takes no WebSockets over HTTP/1.1",
    );
  }
  expect(gate.log().filter(({ msg }) => msg === "a target is left out")).toEqual([]);
  for (let i = 0; i < 4; i += 1) expect((await ask(gate, "/public/x")).status).toBe(200);
  expect(one.requests.length).toBe(two.requests.length);
});

it("a backend that closes such a connection is not ejected either", async () => {
  await using one = await startRawBackend(() => ({ write: "", then: "reset" }));
  await using two = await startRawBackend(() => ({ write: "", then: "reset" }));
  await using gate = await inFrontOf([one.url, two.url]);
  const { last } = await exchange(gate, HANDSHAKE, { responses: Infinity });
  expect([last.status, last.header("proxy-status")]).toEqual([
    502,
    "sallyport; error=connection_terminated",
  ]);
  expect(last.body).toContain("takes no WebSockets over HTTP/1.1");
  expect([one.seen().length, two.seen().length]).toEqual([1, 1]);
  expect(gate.log().filter(({ msg }) => msg === "a target is left out")).toEqual([]);
});

it("a backend with both protocols accepts them", async () => {
  await using backend = await startWebSocketBackend();
  await using gate = await inFrontOf([backend.url]);
  using socket = await openWebSocket(gate, "/public/chat");
  socket.send("hello");
  expect(await socket.message()).toBe("hello");
});
