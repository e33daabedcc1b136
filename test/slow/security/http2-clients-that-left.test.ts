/**
 * HTTP/2 clients in the clear that have left. A client that sends a half-finished request and closes can never finish it.
 * A proxy that goes on waiting keeps the request, its slot at the backend and the connection until a time limit of minutes;
 * a few dozen such clients per second take all of them. Over HTTP/1.1 and TLS they end at once.
 *
 * Sallyport ends what the client can no longer complete, answers the rest, and closes the connection.
 */
import type { Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  FrameClient,
  GET,
  headerBlock,
} from "../../support/http2-frames.ts";
import { useSallyport } from "../../support/pair.ts";
import type { RawScript } from "../../support/raw-backend.ts";
import { openSocket, request } from "../../support/raw-client.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const COUNT = 60;
/** Far below every time limit of the configuration. */
const SOON_MS = 4_000;
const PREFACE = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1"),
  frame(FRAME.settings, 0, 0),
]);

const head = (
  method: string,
  path: string,
  flags: number,
  fields: [string, string][] = [],
): Buffer => {
  const pseudo = GET.map(([name, value]): [string, string] => {
    if (name === ":method") return [name, method];
    return name === ":path" ? [name, path] : [name, value];
  });
  return frame(FRAME.headers, END_HEADERS | flags, 1, headerBlock([...pseudo, ...fields]));
};

/** More than the window of a client that has changed nothing, of a stream and of the connection. */
const LARGE = "x".repeat(300_000);

const script: RawScript = ({ startLine }) =>
  startLine.startsWith("GET")
    ? startLine.includes("/public/large")
      ? { write: request(["HTTP/1.1 200 OK", `Content-Length: ${LARGE.length}`], LARGE) }
      : { write: request(["HTTP/1.1 200 OK", "Content-Length: 2"], "ok") }
    : "hang";

/** Bytes of a request that is not complete. */
const PARTS: [string, Buffer[]][] = [
  ["only the head", [head("POST", "/public/x", 0)]],
  [
    "a part of the body",
    [head("POST", "/public/x", 0), frame(FRAME.data, 0, 1, Buffer.from("abc"))],
  ],
  [
    "3 of 5 bytes",
    [
      head("POST", "/public/x", 0, [["content-length", "5"]]),
      frame(FRAME.data, 0, 1, Buffer.from("abc")),
    ],
  ],
  [
    "a part of a large body",
    [
      head("POST", "/public/x", 0, [["content-length", "100000"]]),
      frame(FRAME.data, 0, 1, Buffer.alloc(16_000)),
    ],
  ],
];

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: { server: { tls: "off", http2: true, workers: 1 } },
  });

  async function open(): Promise<Socket> {
    const socket = await openSocket(standing().gate);
    onTestFinished(() => void socket.destroy());
    return socket.on("error", () => undefined).resume();
  }

  const inFlight = async (): Promise<number> => {
    const { value } = await scrape(standing().gate);
    return (
      Number(value("sallyport_http_requests_in_flight")) +
      Number(value('sallyport_upstream_requests_in_flight{upstream="app"}'))
    );
  };

  /** Waits until everything of all these clients has ended. */
  async function expectEnded(sockets: readonly Socket[], linesBefore: number): Promise<void> {
    const { gate } = standing();
    const lines = () =>
      gate
        .log()
        .slice(linesBefore)
        .filter(({ msg }) => msg === "request");
    await until(() => lines().length >= COUNT, SOON_MS);
    await until(async () => (await inFlight()) === 0, SOON_MS);
    expect(lines()).toEqual(
      sockets.map(() => expect.objectContaining({ status: 499, reason: "aborted" })),
    );
    await until(() => sockets.every(({ destroyed }) => destroyed), SOON_MS);
  }

  it.each(PARTS)("ends requests of which %s and a FIN have arrived together", async (_, parts) => {
    const before = standing().gate.log().length;
    const sockets = await Promise.all(Array.from({ length: COUNT }, open));
    for (const socket of sockets) socket.end(Buffer.concat([PREFACE, ...parts]));
    await expectEnded(sockets, before);
  });

  it.each(PARTS)("ends requests of which %s has arrived, and a FIN later", async (_, parts) => {
    const before = standing().gate.log().length;
    const sockets = await Promise.all(Array.from({ length: COUNT }, open));
    for (const socket of sockets) socket.write(Buffer.concat([PREFACE, ...parts]));
    await until(async () => (await inFlight()) >= COUNT);
    for (const socket of sockets) socket.end();
    await expectEnded(sockets, before);
  });

  it("ends an answer that is larger than the window of a client that can open it no more", async () => {
    const sockets = await Promise.all(Array.from({ length: 10 }, open));
    const whole = Buffer.concat([PREFACE, head("GET", "/public/large", END_STREAM)]);
    for (const socket of sockets) socket.write(whole);
    await until(async () => (await inFlight()) >= sockets.length);
    for (const socket of sockets) socket.end();
    await until(async () => (await inFlight()) === 0, SOON_MS);
    await until(() => sockets.every(({ destroyed }) => destroyed), SOON_MS);
  });

  it("ends a request that a backend leaves open, since the client cannot be seen to leave", async () => {
    const sockets = await Promise.all(Array.from({ length: 10 }, open));
    const whole = Buffer.concat([PREFACE, head("PUT", "/public/x", END_STREAM)]);
    for (const socket of sockets) socket.write(whole);
    await until(async () => (await inFlight()) >= sockets.length);
    for (const socket of sockets) socket.end(() => socket.destroy());
    await until(async () => (await inFlight()) === 0, SOON_MS);
  });

  it("answers complete requests of a client that sends nothing more, then closes", async () => {
    const client = await FrameClient.connect(standing().gate);
    client.socket.end(head("GET", "/public/x", END_STREAM));
    await until(() => client.closed, SOON_MS);
    expect(
      client
        .of(FRAME.data)
        .map(({ payload }) => String(payload))
        .join(""),
    ).toBe("ok");
  });

  it("answers them, too, if all of it arrives together", async () => {
    const socket = await openSocket(standing().gate);
    const received: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    socket.end(Buffer.concat([PREFACE, head("GET", "/public/x", END_STREAM)]));
    await until(() => socket.destroyed, SOON_MS);
    expect(String(Buffer.concat(received))).toContain("ok");
  });
});
