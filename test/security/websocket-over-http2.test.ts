/**
 * WebSockets over HTTP/2 as a way around: what a client may not do over HTTP/1.1, it may not do with an extended
 * CONNECT (RFC 8441), and what it may not do to a connection, it may not do to a stream.
 */
import { constants } from "node:http2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectHttp2 } from "../support/http2-client.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  FrameClient,
  headerBlock,
} from "../support/http2-frames.ts";
import { connectTunnel } from "../support/http2-websocket.ts";
import { useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { startWebSocketBackend, type WebSocketBackend } from "../support/websocket.ts";

type Fields = readonly (readonly [string, string])[];

const config = { server: { http2: true, tls: "off", limits: { streams: 10 } } };
const RESET = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);
const connectTo = (path: string, ...more: Fields): Fields => [
  ...([
    [":method", "CONNECT"],
    [":protocol", "websocket"],
    [":scheme", "http"],
    [":authority", "localhost"],
    [":path", path],
    ["sec-websocket-version", "13"],
  ] as const),
  ...more,
];

function connect(client: FrameClient, stream: number, fields: Fields, flags = 0): void {
  client.send(frame(FRAME.headers, END_HEADERS | flags, stream, headerBlock(fields)));
}

describe("a backend that does not answer, or answers wrongly", () => {
  const script: RawScript = ({ startLine }) => {
    if (startLine.includes("/silent")) return "hang";
    const accept = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n";
    return { write: `HTTP/1.1 101 Switching Protocols\r\n${accept}\r\n` };
  };
  const standing = useSallyport(script, {
    withoutToken: true,
    config: { ...config, upstreams: { app: { websocket: { handshake: "5m" } } } },
  });

  const inFlight = async (): Promise<number | undefined> =>
    (await scrape(standing().gate)).value('sallyport_upstream_requests_in_flight{upstream="app"}');

  it.each([
    ["resets its stream", (client: FrameClient) => client.send(frame(FRAME.reset, 0, 1, RESET))],
    ["ends its stream", (client: FrameClient) => client.send(frame(FRAME.data, END_STREAM, 1))],
    ["closes its connection", (client: FrameClient) => void client.socket.end()],
  ])("a client that %s gives its place back", async (_name, leave) => {
    await using client = await FrameClient.connect(standing().gate);
    connect(client, 1, connectTo("/public/silent"));
    await until(async () => (await inFlight()) === 1);
    leave(client);
    await until(async () => (await inFlight()) === 0);
  });

  it("a client that does not wait for the answer is refused, and its connection stays open", async () => {
    const { gate, backend } = standing();
    await using client = await connectHttp2({ port: gate.port });
    const opened = connectTunnel(client, "/public/silent", {}, Buffer.alloc(200 * 1024, "a"));
    const { stream, status } = await opened;
    expect(status).toBe(400);
    await until(() => stream.closed);
    await until(async () => (await inFlight()) === 0);
    expect((await connectTunnel(client, "/public/wrong")).status).toBe(502);
    const received = backend.connections.map((each) => each.received().toString("latin1"));
    expect(received.join("")).not.toContain("aaaa");
  });

  it("an answer to another key is 502", async () => {
    await using client = await connectHttp2({ port: standing().gate.port });
    expect((await connectTunnel(client, "/public/wrong")).status).toBe(502);
  });
});

describe("an extended CONNECT", () => {
  const stack = new AsyncDisposableStack();
  let backend: WebSocketBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    backend = stack.use(await startWebSocketBackend());
    gate = stack.use(await startSallyport({ withoutToken: true, target: backend.url, config }));
  });
  afterAll(() => stack.disposeAsync());

  it.each([
    ["Upgrade", connectTo("/public/x", ["upgrade", "websocket"])],
    ["Connection", connectTo("/public/x", ["connection", "upgrade, x-auth-subject"])],
    [":protocol of another method", [[":method", "GET"], ...connectTo("/public/x").slice(1)]],
    ["two protocols", [[":protocol", "websocket"], ...connectTo("/public/x")]],
    ["no path", connectTo("/public/x").filter(([name]) => name !== ":path")],
    ["no scheme", connectTo("/public/x").filter(([name]) => name !== ":scheme")],
    ["no authority", connectTo("/public/x").filter(([name]) => name !== ":authority")],
  ] satisfies [string, Fields][])("with %s resets the stream", async (_name, fields) => {
    const seen = backend.upgrades.length;
    await using client = await FrameClient.connect(gate);
    connect(client, 1, fields);
    await until(() => client.of(FRAME.reset).length > 0);
    expect(client.of(FRAME.reset)[0]?.payload.readUInt32BE()).toBe(
      constants.NGHTTP2_PROTOCOL_ERROR,
    );
    expect(backend.upgrades.length).toBe(seen);
  });

  it("passes on neither a key nor an identity from the client", async () => {
    await using client = await connectHttp2({ port: gate.port });
    const { stream, status } = await connectTunnel(client, "/public/forged", {
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      "x-auth-subject": "root",
      x_auth_subject: "root",
    });
    expect(status).toBe(200);
    const { rawHeaders } = backend.upgrades.at(-1) ?? { rawHeaders: [] };
    expect(rawHeaders.join("\n")).not.toMatch(/root|dGhlIHNh/);
    expect(rawHeaders.filter((each) => /^sec-websocket-key$/i.test(each))).toHaveLength(1);
    stream.close();
  });

  it("that is refused ignores the data after it", async () => {
    const seen = backend.upgrades.length;
    await using client = await connectHttp2({ port: gate.port });
    const smuggled = "GET /public/x HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\r\n";
    const refused = await connectTunnel(client, "/secret", {}, Buffer.from(smuggled));
    expect(refused.status).toBe(401);
    expect((await connectTunnel(client, "/public/next")).status).toBe(200);
    expect(backend.upgrades.slice(seen).map(({ url }) => url)).toEqual(["/public/next"]);
  });

  it("counts as one of the streams, and those above the limit are refused", async () => {
    await using client = await FrameClient.connect(gate);
    for (let stream = 1; stream <= 21; stream += 2) connect(client, stream, connectTo("/public/x"));
    await until(() => client.of(FRAME.reset).length > 0);
    expect(client.of(FRAME.reset).map(({ stream }) => stream)).toEqual([21]);
    await until(() => client.of(FRAME.headers).length === 10);
    client.socket.destroy();
    await until(() => backend.open() === 0);
  });
});

describe("101 of them on one connection with a limit of 100", () => {
  const streams = Array.from({ length: 101 }, (_, i) => 2 * i + 1);
  const hello = Buffer.concat([Buffer.from([0x81, 0x82, 0, 0, 0, 0]), Buffer.from("hi")]);

  it("has the last one refused, and the others open", async () => {
    await using backend = await startWebSocketBackend();
    const app = { targets: [backend.url], connections: 200 };
    const whole = { server: { http2: true, tls: "off" }, upstreams: { app } };
    await using gate = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: whole,
    });
    await using client = await FrameClient.connect(gate);
    for (const stream of streams) connect(client, stream, connectTo("/public/x"));
    await until(() => client.of(FRAME.headers).length === 100 && client.of(FRAME.reset).length > 0);
    const [refused, another] = client.of(FRAME.reset);
    expect(another).toBeUndefined();
    expect(refused).toMatchObject({ stream: 201 });
    expect(refused?.payload.readUInt32BE()).toBe(constants.NGHTTP2_REFUSED_STREAM);
    expect(backend.open()).toBe(100);
    for (const stream of streams.slice(0, 100)) client.send(frame(FRAME.data, 0, stream, hello));
    await until(() => client.of(FRAME.data).length === 100);
    expect(client.of(FRAME.data).map(({ payload }) => payload.toString("latin1", 2))).toEqual(
      Array.from({ length: 100 }, () => "hi"),
    );
    expect(client.closed).toBe(false);
    // When one ends, another can open.
    client.send(frame(FRAME.reset, 0, 1, RESET));
    await until(() => backend.open() === 99);
    connect(client, 203, connectTo("/public/x"));
    await until(() => client.of(FRAME.headers).some(({ stream }) => stream === 203));
  });
});
