/**
 * Unread frames. A client opens many WebSockets and does not read them while the backend sends; or it sends, and the
 * backend does not read. Each fills the buffers of two sockets, and anyone with a token can open hundreds.
 *
 * Their buffered data counts against `server.limits.bufferedBytes` like everything else: the client with the most
 * buffered data loses its connections, others keep theirs.
 */
import { createHash } from "node:crypto";
import { describe, expect, it, onTestFinished } from "vitest";
import { startCrowd } from "../../support/crowd.ts";
import { useSallyport } from "../../support/pair.ts";
import { openSocket, request } from "../../support/raw-client.ts";
import type { RawScript } from "../../support/raw-backend.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const MEBIBYTE = 1024 * 1024;
const BUDGET = 2 * MEBIBYTE;
const GREEDY = "127.0.0.2";
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT = createHash("sha1")
  .update(`${KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
  .digest("base64");
/** A binary frame of 60,000 bytes (RFC 6455 §5.2), as sent by a backend and, masked with zeros, by a client. */
const LENGTH = [126, 60_000 >> 8, 60_000 & 255];
const PAYLOAD = "x".repeat(60_000);
const FRAME = String.fromCharCode(0x82, ...LENGTH) + PAYLOAD;
const MASKED = String.fromCharCode(0x82, 126 | 0x80, ...LENGTH.slice(1)) + "\0\0\0\0" + PAYLOAD;
const FRAMES = 150;

const open = (path: string): string =>
  request([
    ...[`GET ${path} HTTP/1.1`, "Host: localhost", "Connection: Upgrade", "Upgrade: websocket"],
    ...["Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${KEY}`],
  ]);
const SWITCHED = request([
  ...["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"],
  `Sec-WebSocket-Accept: ${ACCEPT}`,
]);
/** Sends frames after its response, or reads nothing after the handshake. */
const script: RawScript = ({ startLine }, { socket }) => {
  if (startLine.includes("deaf")) setImmediate(() => socket.pause());
  return { write: startLine.includes("talks") ? SWITCHED + FRAME.repeat(FRAMES) : SWITCHED };
};

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    config: {
      server: { limits: { bufferedBytes: "2MiB" } },
      upstreams: { app: { connections: 1_000 } },
    },
  });

  it.each([
    ["from the backend that their client does not read", "/public/talks", ""],
    ["from the client that the backend does not read", "/public/deaf", MASKED.repeat(FRAMES)],
  ])("ends WebSockets with too many frames %s", async (_what, path, frames) => {
    const { gate } = standing();
    const ended = async (): Promise<number> =>
      (await scrape(gate)).sum("sallyport_requests_rejected_total", "buffered_bytes");
    const before = await ended();
    const quiet = await openSocket(gate);
    onTestFinished(() => void quiet.destroy());
    quiet.resume().write(open("/public/quiet"));
    const crowd = startCrowd(gate, 40, {
      from: GREEDY,
      each(socket) {
        socket.write(open(path), "latin1");
        // Nothing may be sent before the response to the handshake.
        socket.once("data", () => void socket.pause().write(frames, "latin1"));
      },
    });
    onTestFinished(() => crowd[Symbol.dispose]());
    await until(async () => (await ended()) > before, 20_000);
    for (let i = 0; i < 10; i += 1) {
      const waits = (await scrape(gate)).value("sallyport_buffered_bytes");
      expect(waits).toBeLessThan(1.5 * BUDGET);
    }
    expect(quiet.destroyed).toBe(false);
  });
});
