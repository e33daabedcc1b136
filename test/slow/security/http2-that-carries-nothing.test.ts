/**
 * HTTP/2 connections with useless frames, or with frames that are never read: they are closed with a reason, and other
 * clients are unaffected.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { connectHttp2 } from "../../support/http2-client.ts";
import { FRAME, frame, FrameClient, GET } from "../../support/http2-frames.ts";
import { connectTunnel, openOverHttp2 } from "../../support/http2-websocket.ts";
import { useSallyport } from "../../support/pair.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";
import { startWebSocketBackend, type WebSocketBackend } from "../../support/websocket.ts";

const BIG = 1024 * 1024;
/** A frame of an unknown type, which must be ignored (RFC 9113 §5.5). */
const UNKNOWN = frame(0xbe, 0, 0, Buffer.alloc(16_000));
/** SETTINGS_INITIAL_WINDOW_SIZE: 0 */
const NO_WINDOW = Buffer.from([0, 4, 0, 0, 0, 0]);

async function refused(gate: Sallyport, reason: string): Promise<number> {
  return (await scrape(gate)).sum("sallyport_requests_rejected_total", `"${reason}"`);
}

describe("an HTTP/2 connection", () => {
  const standing = useSallyport(
    () => ({ write: `HTTP/1.1 200 OK\r\nContent-Length: ${BIG}\r\n\r\n${"x".repeat(BIG)}` }),
    {
      config: {
        server: { http2: true, tls: "off", timeouts: { request: "1s" } },
        upstreams: {
          app: {
            timeouts: { connect: "1s", response: "1s", idle: "1s" },
            websocket: { handshake: "1s", idle: "1s" },
          },
        },
      },
    },
  );

  it("with only unknown frames is closed after 8 MiB", async () => {
    const { gate } = standing();
    await using client = await FrameClient.connect(gate);
    let sent = 0;
    const more = (): void => {
      sent += 1;
      if (!client.closed && sent < 2_000) client.socket.write(UNKNOWN, () => setImmediate(more));
    };
    more();
    await until(() => client.closed, 60_000);
    expect(sent).toBeGreaterThan(500);
    expect(await refused(gate, "http2_flood")).toBe(1);
    expect((await ask({ port: gate.port }, "/public/x")).status).toBe(200);
  }, 90_000);

  it("with a zero window loses its stream, and can send another request", async () => {
    const { gate } = standing();
    await using client = await FrameClient.connect(gate);
    client.send(frame(FRAME.settings, 0, 0, NO_WINDOW));
    client.get(1);
    await until(() => client.of(FRAME.reset).length > 0, 60_000);
    expect(client.of(FRAME.data)).toEqual([]);
    expect(await refused(gate, "stalled")).toBe(1);
    client.get(3, [...GET.slice(0, 3), [":path", "/secret"]]);
    await until(() => client.of(FRAME.headers).some(({ stream }) => stream === 3));
    expect(client.closed).toBe(false);
  }, 90_000);
});

/** GOAWAY with INTERNAL_ERROR, after which Node waits until everything was read. */
const FAILED = frame(FRAME.goAway, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 2]));
/** The largest windows: 2^31 - 1. */
const WINDOWS = Buffer.concat([
  frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])),
  frame(FRAME.windowUpdate, 0, 0, Buffer.from([0x7f, 0xff, 0, 0])),
]);

describe("an HTTP/2 connection whose client reports an error and reads nothing", () => {
  // More than sockets buffer.
  const bytes = 16 * BIG;
  const standing = useSallyport(
    () => ({ write: `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}` }),
    { withoutToken: true, config: { server: { http2: true, tls: "off", workers: 1 } } },
  );

  it("is closed soon, and a reload in the meantime is no error", async () => {
    const { gate, backend } = standing();
    const errors = () => gate.log().filter(({ level }) => level === "error");
    await using client = await FrameClient.connect(gate);
    client.send(WINDOWS);
    client.socket.pause();
    client.get(1);
    // The buffers of all sockets are full when nothing moves any more.
    const unsent = () => backend.connections.at(-1)?.socket.writableLength ?? 0;
    await until(async () => {
      const before = unsent();
      await sleep(300);
      return before > 0 && before === unsent();
    });
    client.send(FAILED);
    await until(() => gate.log().some(({ msg, status }) => msg === "request" && status === 499));
    gate.signal("SIGHUP");
    await until(() => gate.log().some(({ msg }) => msg === "the configuration was reloaded"));
    // What a client sends to a closed connection is answered by a reset.
    await until(() => {
      client.send(frame(FRAME.ping, 0, 0, Buffer.alloc(8)));
      return client.closed;
    }, 10_000);
    expect(errors()).toEqual([]);
  }, 30_000);
});

describe("WebSockets over HTTP/2", () => {
  const stack = new AsyncDisposableStack();
  let backend: WebSocketBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    backend = stack.use(await startWebSocketBackend());
    const server = { http2: true, limits: { bufferedBytes: "2MiB" } };
    const upstreams = { app: { targets: [backend.url], connections: 1_000 } };
    gate = stack.use(await startSallyport({ target: "", config: { server, upstreams } }));
  });
  afterAll(() => stack.disposeAsync());

  it("that their client does not read end with its connection, and others continue", async () => {
    await using neighbour = await connectHttp2(gate);
    using quiet = await openOverHttp2(neighbour, "/public/quiet");
    await using greedy = await connectHttp2(gate);
    const tunnels = await Promise.all(
      Array.from({ length: 90 }, (_, n) => connectTunnel(greedy, `/public/${n}`)),
    );
    let ended = false;
    greedy.session.on("close", () => (ended = true));
    // A masked binary message of 60,000 bytes, whose echo is not read.
    const head = Buffer.from([0x82, 0xfe, 60_000 >> 8, 60_000 & 255, 0, 0, 0, 0]);
    const message = Buffer.concat([head, Buffer.alloc(60_000)]);
    for (const { stream } of tunnels) stream.pause().write(Buffer.concat([message, message]));
    await until(() => ended, 30_000);
    expect(await refused(gate, "buffered_bytes")).toBeGreaterThan(0);
    quiet.send("still here");
    expect(await quiet.message()).toBe("still here");
    await until(() => backend.open() === 1);
    await until(
      async () => ((await scrape(gate)).value("sallyport_buffered_bytes") ?? 0) < BIG / 4,
    );
  }, 60_000);
});
