/**
 * A WebSocket that outlives its token. A proxy that checks the token at the upgrade and then only relays bytes gives
 * anyone who once had a token access forever: a former user, or a thief, keeps one connection open with pings, and
 * talks to the backend as that user long after `exp`, when every new request is answered with 401.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { signingPair, signToken } from "../../support/foreign-keys.ts";
import { listeningPort } from "../../support/listening-port.ts";
import { connectHttp2 } from "../../support/http2-client.ts";
import { openOverHttp2 } from "../../support/http2-websocket.ts";
import { logLine } from "../../support/log-line.ts";
import { openSocket, request, type Peer } from "../../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  UpgradeRefused,
  type WebSocketBackend,
} from "../../support/websocket.ts";

const EXACT = "https://exact.example.com";
const LENIENT = "https://lenient.example.com";
const SKEW_SECONDS = 2;
const pair = signingPair("theirs");

/** Enough time to open a WebSocket on a slow machine. */
const soon = (): number => Math.floor(Date.now() / 1000) + 4;
const tokenUntil = (exp: number, iss = EXACT): Promise<string> =>
  signToken(pair, { iss, aud: "orders", sub: "zoe", groups: [], exp });
const bearer = async (exp: number, iss = EXACT): Promise<Record<string, string>> => ({
  authorization: `Bearer ${await tokenUntil(exp, iss)}`,
});

/** The opening handshake, then frames: "hi", "hi" masked with zeros, and a close frame with 1008. */
const SWITCH =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
const HI = "\x81\x02hi";
const MASKED_HI = "\x81\x82\0\0\0\0hi";
const CLOSED = "\x88\x0f\x03\xf0token expired";

interface BytesBackend extends AsyncDisposable {
  readonly url: string;
  /** Returns the connection of this path, and what arrived on it after the handshake. */
  at(path: string): { readonly socket: Duplex; readonly received: () => string } | undefined;
}

/** Starts a backend that switches protocols but does not parse frames. */
async function startBytesBackend(): Promise<BytesBackend> {
  const connections = new Map<string, { socket: Duplex; received: () => string }>();
  const server = createServer();
  server.on("upgrade", ({ url = "" }, socket, head) => {
    const chunks: Uint8Array[] = [head];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("end", () => socket.end());
    socket.write(SWITCH);
    connections.set(url, { socket, received: () => Buffer.concat(chunks).toString("latin1") });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${listeningPort(server)}`,
    at: (path) => connections.get(path),
    async [Symbol.asyncDispose]() {
      for (const { socket } of connections.values()) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

interface BytesClient extends Disposable {
  write(text: string): void;
  /** Everything received after the 101. */
  readonly received: () => string;
  readonly closed: () => boolean;
}

/** Opens a client that does not parse frames. */
async function openBytes(peer: Peer, path: string, token: string): Promise<BytesClient> {
  const socket = await openSocket(peer);
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  socket.write(
    request([
      ...[`GET ${path} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`],
      ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]),
  );
  await until(() => text.includes("\r\n\r\n"));
  expect(text).toMatch(/^HTTP\/1\.1 101 /);
  return {
    write: (more) => void socket.write(more, "latin1"),
    received: () => text.slice(text.indexOf("\r\n\r\n") + 4),
    closed: () => socket.destroyed,
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

describe("Sallyport", () => {
  const stack = new AsyncDisposableStack();
  let backend: WebSocketBackend;
  let bytes: BytesBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    backend = stack.use(await startWebSocketBackend());
    bytes = stack.use(await startBytesBackend());
    const trust = { audience: "orders", algorithms: ["ES256"], jwks: { file: "jwks.json" } };
    gate = await startSallyport({
      target: backend.url,
      files: { "jwks.json": JSON.stringify({ keys: [pair.jwk] }) },
      config: {
        server: { http2: true },
        tokens: {
          trusted: [
            { ...trust, issuer: EXACT, clockSkew: "0s" },
            { ...trust, issuer: LENIENT, clockSkew: `${SKEW_SECONDS}s` },
          ],
        },
        routes: [
          { name: "public", path: "/public/", auth: "none", upstream: "app" },
          { name: "watched", path: "/watched/", mode: "monitor", upstream: "app" },
          { name: "bytes", path: "/bytes/", upstream: "bytes" },
          { name: "everything", path: "/", upstream: "app" },
        ],
        upstreams: { bytes: { targets: [bytes.url] } },
      },
    });
    stack.use(gate);
  });
  afterAll(() => stack.disposeAsync());

  it.concurrent("closes it with 1008 over HTTP/2, and other streams continue", async () => {
    const exp = soon();
    await using client = await connectHttp2(gate);
    using open = await openOverHttp2(client, "/public/http2");
    using socket = await openOverHttp2(client, "/chat/http2", await bearer(exp));
    expect(await socket.closed).toBe(1008);
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1000);
    expect(await logLine(gate, { path: "/chat/http2", status: 200 })).toMatchObject({
      auth: "allowed",
      subject: "zoe",
      reason: "token_expired",
      protocol: "websocket",
    });
    open.send("still here");
    expect(await open.message()).toBe("still here");
  });

  it.concurrent("closes it with 1008 on both sides when its token expires, and not before", async () => {
    const exp = soon();
    const headers = await bearer(exp);
    const socket = new WebSocket(`wss://127.0.0.1:${gate.port}/chat`, { ca: gate.ca, headers });
    const closed = once(socket, "close");
    await once(socket, "open");
    socket.send("hello");
    expect(String((await once(socket, "message"))[0])).toBe("hello");
    const [code, reason] = await closed;
    expect([code, String(reason)]).toEqual([1008, "token expired"]);
    expect(Date.now()).toBeGreaterThanOrEqual(exp * 1000);
    await until(() => backend.closeCodes.includes(1008));
    expect(await logLine(gate, { path: "/chat", status: 101 })).toMatchObject({
      auth: "allowed",
      subject: "zoe",
      reason: "token_expired",
    });
    await expect(openWebSocket(gate, "/chat", headers)).rejects.toThrow(UpgradeRefused);
  });

  it.concurrent("allows the clock skew of the issuer", async () => {
    const exp = soon() - SKEW_SECONDS;
    using socket = await openWebSocket(gate, "/skewed", await bearer(exp, LENIENT));
    expect(await socket.closed).toBe(1008);
    expect(Date.now()).toBeGreaterThanOrEqual((exp + SKEW_SECONDS) * 1000);
  });

  it.concurrent("keeps it open if no token is required, or the token is valid for years", async () => {
    const exp = soon();
    const open = [
      await openWebSocket(gate, "/public/open", await bearer(exp)),
      await openWebSocket(gate, "/watched/open", await bearer(exp)),
      // Further away than Node's longest timer.
      await openWebSocket(gate, "/years", await bearer(exp + 1_000_000_000)),
    ];
    using ended = await openWebSocket(gate, "/ended", await bearer(exp));
    await ended.closed;
    for (using socket of open) {
      socket.send("still here");
      expect(await socket.message()).toBe("still here");
    }
    expect(gate.stderr()).not.toContain("TimeoutOverflowWarning");
  });

  it.concurrent("relays nothing more for a client that ignores the close frame", async () => {
    using client = await openBytes(gate, "/bytes/a", await tokenUntil(soon()));
    const talking = setInterval(() => client.write(MASKED_HI), 20);
    await until(() => client.closed()).finally(() => clearInterval(talking));
    expect(client.received()).toBe(CLOSED);
    await until(() => bytes.at("/bytes/a")?.socket.destroyed === true);
    const seen = bytes.at("/bytes/a")?.received() ?? "";
    const frames = seen.slice(0, seen.indexOf("\x88"));
    expect(frames).toBe(MASKED_HI.repeat(frames.length / MASKED_HI.length));
    // One masked close frame, and nothing after it.
    expect(seen.slice(frames.length)).toMatch(/^\x88\x8f.{19}$/s);
  });

  it.concurrent("finishes the current frame, and relays nothing after it", async () => {
    using client = await openBytes(gate, "/bytes/b", await tokenUntil(soon()));
    const far = bytes.at("/bytes/b")?.socket;
    far?.write(`${HI}\x81\x04ha`, "latin1");
    // Triggered by the close frame.
    far?.once("data", () => far.write(`lf${HI}`, "latin1"));
    await until(() => client.closed());
    expect(client.received()).toBe(`${HI}\x81\x04half${CLOSED}`);
  });

  it.concurrent("does not wait for an endless frame", async () => {
    using client = await openBytes(gate, "/bytes/c", await tokenUntil(soon()));
    client.write("\x81\xfe\x7f\xff\0\0\0\0never");
    await until(() => client.closed());
    expect(client.received()).toBe(CLOSED);
    await until(() => bytes.at("/bytes/c")?.socket.destroyed === true);
    expect(bytes.at("/bytes/c")?.received()).toBe("\x81\xfe\x7f\xff\0\0\0\0never");
  });
});
