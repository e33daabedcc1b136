/**
 * Answers of an HTTP/2 backend while the request is still being sent. Node emits the events of a stream inside callbacks of
 * nghttp2. A proxy that resets the stream there, because it refuses or discards the answer, leaves it half destroyed if
 * the same segment ends the answer: an assertion of Node (`Http2Stream::OnTrailers`) then aborts the process. An honest
 * backend that says 503 does this as well as a hostile one. Sallyport ends a stream outside these callbacks only.
 */
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { ask } from "../support/ask.ts";
import { expectEnvelope } from "../support/envelope.ts";
import { logLine } from "../support/log-line.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  FrameClient,
  headerBlock,
} from "../support/http2-frames.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { chunked, type Exchange, exchange, request } from "../support/raw-client.ts";
import * as h2 from "../support/raw-http2-backend.ts";
import type { Sallyport } from "../support/sallyport.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { until } from "../support/until.ts";

const part = useSharedSallyport({
  config: {
    server: { tls: "off", http2: true, workers: 1 },
    tokens: { revocation: { logout: true } },
  },
});

/** A body whose end has not been sent. */
const OPEN_CHUNK = chunked("some").slice(0, -"0\r\n\r\n".length);

/** Sends a PUT, and no end of its body. */
const put = (port: number, path: string): Promise<Exchange> =>
  exchange(
    { port },
    request([`PUT ${path} HTTP/1.1`, "Host: localhost", "Transfer-Encoding: chunked"], OPEN_CHUNK),
  );

/** The process may end after the answer has gone out. */
async function expectAlive(gate: Sallyport): Promise<void> {
  expect((await ask(gate, "/nobody")).status).toBe(401);
  expect(gate.exited()).toBe(false);
}

const OK = [":status", "200"] as const;

/** Heads that are refused. */
const HEADS: [string, (stream: number) => Buffer][] = [
  ["a status of 600", (stream) => h2.head(stream, [[":status", "600"]])],
  [
    "announced trailers and a length",
    (stream) => h2.head(stream, [OK, ["trailer", "x-sum"], ["content-length", "0"]]),
  ],
  [
    "17 interim heads",
    (stream) => {
      const interim = Array.from({ length: 17 }, () => h2.head(stream, [[":status", "102"]]));
      return Buffer.concat([...interim, h2.head(stream, [OK])]);
    },
  ],
];

it.each(
  HEADS.map(([name, head]) => ({
    name,
    standing: part(async (stack) => {
      const answered = new Set<Socket>();
      const backend = stack.use(
        await h2.startRawHttp2Backend(({ type, stream }, socket) => {
          if (type !== h2.HEADERS || answered.has(socket)) return;
          answered.add(socket);
          const end = h2.frame(h2.DATA, h2.END_STREAM, stream);
          socket.write(Buffer.concat([head(stream), end]));
        }),
      );
      const upstream = { targets: [backend.url], protocol: "h2c" };
      return { upstream, route: { auth: "none" } };
    }),
  })),
)("survives $name and the end of the stream in one segment", async ({ standing }) => {
  const { gate, path } = standing();
  expectEnvelope((await put(gate.port, path("/x"))).last, 502);
  await expectAlive(gate);
});

const busy = part(async (stack) => {
  const backend = stack.use(
    await startHttp2Backend(({ stream }) => {
      stream.respond({ ":status": 503 });
      stream.end();
    }),
  );
  return {
    backend,
    upstream: { targets: [backend.url], protocol: "h2c" },
    route: { auth: "none", retry: { attempts: 2, on: ["503"] } },
  };
});

it("survives an honest 503 that it discards to send the request again", async () => {
  const { gate, backend, path } = busy();
  expect((await put(gate.port, path("/x"))).last.status).toBe(503);
  expect(backend.requests).toHaveLength(3);
  await expectAlive(gate);
});

/** A backend that needs no more of the request resets the stream after a complete answer (RFC 9113 §8.1), as gRPC servers do. */
const satisfied = part(async (stack) => {
  let isFirst = true;
  const backend = stack.use(
    await h2.startRawHttp2Backend(({ type, stream }, socket) => {
      const data = Array.from({ length: 4 }, () =>
        h2.frame(h2.DATA, 0, stream, Buffer.alloc(15_000, "a")),
      );
      if (type === h2.HEADERS) socket.write(Buffer.concat([h2.head(stream, [OK]), ...data]));
      // The first half was taken, and there is room for the other one.
      if (type !== FRAME.windowUpdate || stream === 0 || !isFirst) return;
      isFirst = false;
      const end = h2.head(stream, [["x-sum", "1"]], h2.END_STREAM);
      socket.write(Buffer.concat([...data, end, h2.rst(stream, 0)]));
    }),
  );
  return { upstream: { targets: [backend.url], protocol: "h2c" }, route: { auth: "none" } };
});

const late = part(async (stack) => {
  const backend = stack.use(await startHttp2Backend(() => undefined));
  return { backend, upstream: { targets: [backend.url], protocol: "h2c" } };
});

/** SETTINGS_INITIAL_WINDOW_SIZE 0: the client takes the heads of answers, and not a byte of their bodies. */
const NO_WINDOW = frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0]));

/** WINDOW_UPDATE for the connection and stream 1. */
const WINDOW = [0, 1].map((stream) =>
  frame(FRAME.windowUpdate, 0, stream, Buffer.from([0, 4, 0, 0])),
);

it("takes an answer for complete whose stream is reset behind it, while the client does not read", async () => {
  const { gate, path } = satisfied();
  const client = await FrameClient.connect(gate);
  onTestFinished(() => client[Symbol.asyncDispose]());
  const target = [":path", path("/x")] as const;
  const fields = [
    [":method", "POST"],
    [":scheme", "http"],
    [":authority", "localhost"],
    target,
  ] as const;
  client.send(NO_WINDOW, frame(FRAME.headers, END_HEADERS, 1, headerBlock(fields)));
  client.send(frame(FRAME.data, 0, 1, Buffer.from("some")));
  await until(() => client.of(FRAME.headers).length === 1);
  // It waits for the client now, and has been reset.
  await delay(200);
  client.send(...WINDOW);
  await until(() => client.of(FRAME.headers).length === 2);
  const bytes = client.of(FRAME.data).reduce((sum, { payload }) => sum + payload.length, 0);
  expect([bytes, client.of(FRAME.headers)[1]?.flags]).toEqual([120_000, END_HEADERS | END_STREAM]);
  const line = await logLine(gate, { path: path("/x") });
  expect([line["status"], line["reason"], line["bytes_out"]]).toEqual([200, "ok", 120_000]);
});

it("survives an answer to an upload whose token was revoked", async () => {
  const { gate, backend, path } = late();
  const authorization = `Bearer ${await gate.login("alice", "correct horse battery staple")}`;
  const client = await FrameClient.connect(gate);
  onTestFinished(() => client[Symbol.asyncDispose]());
  const head = [
    [":method", "POST"],
    [":scheme", "http"],
    [":authority", "localhost"],
    [":path", path("/x")],
    ["authorization", authorization],
  ] as const;
  client.send(NO_WINDOW, frame(FRAME.headers, END_HEADERS, 1, headerBlock(head)));
  client.send(frame(FRAME.data, 0, 1, Buffer.from("some")));
  await until(() => backend.requests.length === 1);
  const [sent] = backend.requests;
  const logout = await ask(gate, "/api/logout", { method: "POST", headers: { authorization } });
  expect(logout.status).toBe(200);
  await until(() => client.of(FRAME.headers).length === 1);
  const stream = sent?.stream;
  if (stream !== undefined && !stream.destroyed) {
    stream.respond({ ":status": 200 });
    stream.end();
    await once(stream, "close");
  }
  await expectAlive(gate);
});
