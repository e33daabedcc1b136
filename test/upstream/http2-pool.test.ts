/** The contract of HTTP/2 connections in addition to that of HTTP/1.1. */
import { IncomingMessage } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import * as h2 from "../support/raw-http2-backend.ts";
import type { BackendRequest } from "../../src/upstream/http/connection.ts";
import { RequestBody } from "../../src/upstream/http/client-body.ts";
import { Http2Pool, type PingTimes } from "../../src/upstream/http2/http2-pool.ts";
import { originOf } from "../../src/upstream/pool/target-origin.ts";
import { closedPort, startSilentServer } from "../support/dead-ends.ts";
import { GET, recorder } from "../support/exchange-recorder.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { until } from "../support/until.ts";

function poolTo(
  url: string,
  { connectMs = 5_000, pings }: { connectMs?: number; pings?: PingTimes } = {},
) {
  const pool = new Http2Pool(originOf(url), connectMs, undefined, pings);
  let closed = false;
  const close = async () => {
    closed = true;
    await pool.close();
  };
  onTestFinished(async () => {
    if (!closed) await pool.close();
  });
  const ask = async (request: Partial<BackendRequest> = {}, exchange = recorder()) => {
    pool.dispatch({ ...GET, ...request }, exchange);
    await exchange.ended;
    return exchange;
  };
  return { pool, ask, close };
}

test("one connection carries concurrent requests", async () => {
  const held: ServerHttp2Stream[] = [];
  await using backend = await startHttp2Backend(({ stream }) => void held.push(stream));
  const { ask } = poolTo(backend.url);
  const asked = Array.from({ length: 50 }, (_, index) => ask({ path: `/${index}` }));
  await until(() => held.length === 50, 5_000);
  for (const [index, stream] of held.entries()) {
    stream.respond({ ":status": 200, "x-index": String(index) });
    stream.end("x".repeat(index));
  }
  const answers = await Promise.all(asked);
  expect(answers.map(({ status, text }) => [status, text.length])).toEqual(
    answers.map((_, index) => [200, index]),
  );
  expect(answers.map(({ wasUsed }) => wasUsed)).toEqual(answers.map((_, index) => index > 0));
  expect(backend.sessions).toHaveLength(1);
});

test("another connection opens when the backend accepts no more streams on one", async () => {
  let atATime = 0;
  let most = 0;
  await using backend = await startHttp2Backend(
    ({ stream }) => {
      most = Math.max(most, (atATime += 1));
      setTimeout(() => {
        atATime -= 1;
        stream.respond({ ":status": 200 });
        stream.end("ok");
      }, 30);
    },
    { settings: { maxConcurrentStreams: 2 } },
  );
  const { ask } = poolTo(backend.url);
  const answers = await Promise.all(Array.from({ length: 6 }, () => ask()));
  expect(answers.map(({ text }) => text)).toEqual(Array.from({ length: 6 }, () => "ok"));
  expect(most).toBeGreaterThan(2);
  expect(backend.sessions.length).toBeLessThanOrEqual(3);
  expect((await ask()).wasUsed).toBe(true);
});

test("a backend that allows no streams is an error", async () => {
  await using backend = await h2.startRawHttp2Backend(() => undefined, h2.settings([3, 0]));
  expect((await poolTo(backend.url).ask()).error).toMatchObject({ kind: "invalid_http2" });
});

test.each(["refused", "silent"])("a connection that does not open is an error: %s", async (how) => {
  await using silent = await startSilentServer();
  const url =
    how === "silent" ? `http://127.0.0.1:${silent.port}` : `http://127.0.0.1:${await closedPort()}`;
  const { ask } = poolTo(url, { connectMs: 300 });
  const error = how === "silent" ? { kind: "connect_timeout" } : { code: "ECONNREFUSED" };
  const answers = await Promise.all([ask(), ask()]);
  expect(answers.map((answer) => answer.error)).toMatchObject([error, error]);
});

test("a request whose client disconnects before the connection opens is not sent", async () => {
  await using backend = await startHttp2Backend();
  const { pool, ask } = poolTo(backend.url);
  const gone = recorder();
  pool.dispatch({ ...GET, path: "/gone" }, gone);
  pool.withdraw(gone);
  await ask({ path: "/stays" });
  expect(backend.requests.map(({ path }) => path)).toEqual(["/stays"]);
});

test("requests that a backend has not processed are distinguished from those that it may have", async () => {
  await using backend = await h2.startRawHttp2Backend(({ type, stream }, socket) => {
    if (type !== h2.HEADERS || stream < 3) return;
    // Stream 1 may have been processed, 3 was not.
    socket.end(h2.goaway(1, 0));
  });
  const { pool, ask } = poolTo(backend.url);
  const first = recorder();
  pool.dispatch(GET, first);
  const second = await ask();
  await first.ended;
  expect(first.error).not.toMatchObject({ kind: "unprocessed" });
  expect(first.error).toMatchObject({ reason: "reset" });
  expect(second.error).toMatchObject({ kind: "unprocessed" });
});

test("a GOAWAY lets requests finish, and the next one uses another connection", async () => {
  await using backend = await h2.startRawHttp2Backend(({ type, stream }, socket) => {
    if (type !== h2.HEADERS) return;
    socket.write(h2.goaway(stream, 0));
    setTimeout(() => void socket.write(h2.answer(stream)), 50);
  });
  const { ask } = poolTo(backend.url);
  for (let asked = 1; asked <= 3; asked += 1) {
    expect(await ask()).toMatchObject({ text: "ok", wasUsed: false, error: undefined });
    expect(backend.sockets).toHaveLength(asked);
  }
});

test("a quiet connection is pinged, and closed if it does not answer", async () => {
  let answers = true;
  await using backend = await h2.startRawHttp2Backend(({ type, payload, flags }, socket) => {
    if (type === h2.PING && flags === 0 && answers)
      socket.write(h2.frame(h2.PING, h2.ACK, 0, payload));
  });
  const { ask, pool } = poolTo(backend.url, { pings: { quiet: 100, answer: 200, again: 300 } });
  const first = recorder();
  pool.dispatch(GET, first);
  await until(() => backend.frames.filter(({ type }) => type === h2.PING).length === 2, 5_000);
  expect(first.error).toBeUndefined();
  answers = false;
  expect((await ask()).error).toMatchObject({ reason: "reset" });
  expect(first.error).toMatchObject({ reason: "reset" });
});

test("a response that is reset without an error code is cut off, not complete", async () => {
  await using backend = await h2.startRawHttp2Backend(({ type, stream }, socket) => {
    if (type !== h2.HEADERS) return;
    socket.write(h2.head(stream, [[":status", "200"]]));
    socket.write(h2.frame(h2.DATA, 0, stream, Buffer.from("half")));
    setTimeout(() => void socket.write(h2.rst(stream, 0)), 20);
  });
  expect(await poolTo(backend.url).ask()).toMatchObject({
    text: "half",
    error: { reason: "reset" },
  });
});

test("an aborted upload does not look complete", async () => {
  await using backend = await h2.startRawHttp2Backend(() => undefined);
  const { pool } = poolTo(backend.url);
  const exchange = recorder();
  const { body, send } = openBody();
  pool.dispatch({ ...GET, method: "POST", body }, exchange);
  send("half");
  await until(() => backend.frames.some(({ type }) => type === h2.DATA), 5_000);
  exchange.control?.abort(new Error("enough"));
  await until(() => backend.frames.some(({ type }) => type === h2.RST_STREAM), 5_000);
  const data = backend.frames.filter(({ type }) => type === h2.DATA);
  expect(data.map(({ flags }) => flags & h2.END_STREAM)).toEqual([0]);
});

test("nothing beyond the window is read while the client does not read", async () => {
  await using backend = await startHttp2Backend(({ stream }) => {
    stream.respond({ ":status": 200 });
    stream.end("x".repeat(1_000_000));
  });
  const { ask } = poolTo(backend.url);
  let pausedAt = 0;
  const exchange = recorder(({ control, text }) => {
    if (pausedAt > 0) return;
    pausedAt = text.length;
    control?.pause();
    setTimeout(() => {
      expect(exchange.text.length).toBe(pausedAt);
      control?.resume();
    }, 200);
  });
  // Another request still passes.
  const both = Promise.all([ask({}, exchange), ask()]);
  expect((await both).map(({ text }) => text.length)).toEqual([1_000_000, 1_000_000]);
  expect(pausedAt).toBeGreaterThan(0);
});

test("a pool that closes lets its requests finish", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<ServerHttp2Stream>();
  await using backend = await startHttp2Backend(({ stream }) => resolve(stream));
  const { ask, close } = poolTo(backend.url);
  const answer = ask();
  const stream = await asked;
  const closing = close();
  stream.respond({ ":status": 200 });
  stream.end("ok");
  expect((await answer).text).toBe("ok");
  await closing;
  await until(() => backend.sessions.every(({ destroyed }) => destroyed), 5_000);
});

/** Creates a body that is not complete yet. */
function openBody() {
  const source = new IncomingMessage(new Socket());
  const body = new RequestBody(source, Infinity, {
    received: () => undefined,
    ended: () => undefined,
    awaited: () => undefined,
    supplied: () => undefined,
  });
  return { body, send: (text: string) => void source.push(Buffer.from(text)) };
}
