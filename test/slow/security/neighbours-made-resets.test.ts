/**
 * MadeYouReset (CVE-2025-8671; HAProxy CVE-2026-110353 for other frames): the client sends a frame that makes the
 * server reset the stream. A reset stream no longer counts against the limit of concurrent streams, but the backend
 * still works on its request, so one connection makes the backend do any amount of work. Limits on the client's own
 * resets do not see it.
 */
import { describe, expect, it } from "vitest";
import { connectHttp2 } from "../../support/http2-client.ts";
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
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const STREAMS = 10;
const standing = useSallyport(
  ({ startLine }) =>
    startLine.includes("/hang")
      ? "hang"
      : { write: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
  {
    withoutToken: true,
    config: { server: { http2: true, tls: "off", limits: { streams: STREAMS } } },
  },
);

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
const HANGING = [...GET.slice(0, 3), [":path", "/public/hang"]] as const;
const POST = [[":method", "POST"], ...HANGING.slice(1)] as const;
const open = (stream: number): Buffer =>
  frame(FRAME.headers, END_HEADERS, stream, headerBlock(POST));

/** Each makes the server end the stream, which is open on its side. */
const MADE: Readonly<Record<string, (stream: number) => Buffer>> = {
  "a WINDOW_UPDATE of 0": (stream) => frame(FRAME.windowUpdate, 0, stream, uint32(0)),
  "a WINDOW_UPDATE beyond 2^31": (stream) =>
    frame(FRAME.windowUpdate, 0, stream, uint32(0x7fffffff)),
  "DATA after END_STREAM": (stream) =>
    Buffer.concat([
      frame(FRAME.data, END_STREAM, stream, "x"),
      frame(FRAME.data, 0, stream, "more"),
    ]),
  "HEADERS after END_STREAM": (stream) =>
    Buffer.concat([
      frame(FRAME.data, END_STREAM, stream, "x"),
      frame(FRAME.headers, END_HEADERS | END_STREAM, stream, headerBlock([["x-a", "b"]])),
    ]),
  "a stream that depends on itself": (stream) =>
    frame(FRAME.priority, 0, stream, Buffer.concat([uint32(stream), Buffer.of(16)])),
  "a PRIORITY of a wrong length": (stream) => frame(FRAME.priority, 0, stream, Buffer.alloc(4)),
  "a RST_STREAM of a wrong length": (stream) => frame(FRAME.reset, 0, stream, Buffer.alloc(3)),
  "trailers that are malformed": (stream) =>
    frame(FRAME.headers, END_HEADERS | END_STREAM, stream, headerBlock([["connection", "close"]])),
  "a body that is longer than announced": (stream) =>
    frame(FRAME.data, END_STREAM, stream, "x".repeat(100)),
};

describe.each(Object.entries(MADE))("a client that makes the server reset by %s", (name, made) => {
  it("occupies no more of the backend than its streams, and loses the connection or nothing", async () => {
    const { gate, backend } = standing();
    const atBackend = (): number =>
      backend.connections.filter(({ socket }) => !socket.destroyed).length;
    await using client = await FrameClient.connect(gate);
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, atBackend())), 2);
    for (let stream = 1; stream < 4_000 && !client.closed; stream += 2) {
      const length = name.includes("announced") ? [["content-length", "5"] as const] : [];
      const head =
        length.length === 0
          ? open(stream)
          : frame(FRAME.headers, END_HEADERS, stream, headerBlock([...POST, ...length]));
      client.send(head, made(stream));
      if (stream % 100 === 1) await new Promise((resolve) => setImmediate(resolve));
    }
    client.send(frame(FRAME.ping, 0, 0, Buffer.alloc(8)));
    await until(() => client.closed || client.of(FRAME.ping).length > 0);
    await using other = await connectHttp2({ port: gate.port });
    expect((await other.ask({ ":path": "/public/x" })).status).toBe(200);
    client.socket.destroy();
    const inFlight = async (): Promise<number> =>
      (await scrape(gate)).value("sallyport_http_requests_in_flight") ?? 0;
    await until(async () => (await inFlight()) === 0, 5_000);
    await until(() => atBackend() <= 2, 5_000);
    clearInterval(watch);
    // Connections that close count until their end has arrived.
    expect(most).toBeLessThanOrEqual(2 * STREAMS);
    expect(gate.log().filter(({ level }) => level === "error")).toEqual([]);
  });
});
