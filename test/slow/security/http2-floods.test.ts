/** Clients that use HTTP/2 to exhaust memory or CPU time: their connections end, and others continue. */
import { constants } from "node:http2";
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
import type { RawScript } from "../../support/raw-backend.ts";
import { until } from "../../support/until.ts";

const BIG = 1024 * 1024;
const script: RawScript = ({ startLine }) => {
  if (startLine.includes("/hang")) return "hang";
  const body = startLine.includes("/big") ? "x".repeat(BIG) : "ok";
  return { write: `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}` };
};
const to = (path: string) => [...GET.slice(0, 3), [":path", path]] as const;
const POST = [[":method", "POST"], ...GET.slice(1)] as const;
const RESET = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);

describe("over HTTP/2", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: { server: { http2: true, tls: "off", limits: { streams: 10 } } },
  });

  async function expectServed(): Promise<void> {
    await using client = await connectHttp2({ port: standing().gate.port });
    expect((await client.ask({ ":path": "/public/x" })).status).toBe(200);
  }

  it.each([
    [
      "resets all its requests",
      (client: FrameClient) => {
        for (let stream = 1; stream < 6_000; stream += 2) {
          client.get(stream);
          client.send(frame(FRAME.reset, 0, stream, RESET));
        }
      },
    ],
    [
      "never ends a head",
      (client: FrameClient) => {
        client.send(frame(FRAME.headers, END_STREAM, 1, headerBlock(GET)));
        for (let n = 0; n < 500; n++) {
          client.send(frame(FRAME.continuation, 0, 1, headerBlock([["x-a", "b"]])));
        }
      },
    ],
    [
      "sends empty parts of a body",
      (client: FrameClient) => {
        client.send(frame(FRAME.headers, END_HEADERS, 1, headerBlock(POST)));
        for (let n = 0; n < 2_000; n++) client.send(frame(FRAME.data, 0, 1));
      },
    ],
    [
      "sends more requests than allowed",
      (client: FrameClient) => {
        for (let stream = 1; stream < 600; stream += 2) client.get(stream, to("/public/hang"));
      },
    ],
    [
      "does not read the answers to its PINGs",
      (client: FrameClient) => {
        client.socket.pause();
        const pings = Buffer.concat(
          Array.from({ length: 40_000 }, () => frame(FRAME.ping, 0, 0, Buffer.alloc(8))),
        );
        for (let n = 0; n < 20; n++) client.send(pings);
        setTimeout(() => client.socket.resume(), 500);
      },
    ],
  ])("loses a client that %s", async (_name, attack) => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    attack(client);
    await until(() => client.closed);
    expect(backend.seen().length).toBeLessThan(2_000);
    await expectServed();
  });

  it("does not decompress a head that is small only while compressed", async () => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    // The field enters the dynamic table, and is then referred to with one byte each time.
    const [zero, ...bomb] = headerBlock([["x-bomb", "x".repeat(4_000)]]);
    const block = Buffer.from([(zero ?? 0) | 0x40, ...bomb, ...Array(12_000).fill(0x80 | 62)]);
    client.send(
      frame(FRAME.headers, END_STREAM | END_HEADERS, 1, Buffer.concat([headerBlock(GET), block])),
    );
    await until(() => client.of(FRAME.reset).length > 0);
    expect(client.of(FRAME.reset)[0]?.payload.readUInt32BE()).toBe(
      constants.NGHTTP2_ENHANCE_YOUR_CALM,
    );
    expect(backend.seen()).toEqual([]);
    client.get(3);
    await until(() => client.of(FRAME.data).length > 0);
  });

  it("refuses the streams above the limit, and serves the others", async () => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    for (let stream = 1; stream <= 21; stream += 2) client.get(stream, to("/public/hang"));
    await until(() => client.of(FRAME.reset).length > 0);
    expect(client.of(FRAME.reset).map(({ stream }) => stream)).toEqual([21]);
    await until(() => backend.seen().length === 10);
  });

  it("buffers little for a client that opens no window", async () => {
    const { gate } = standing();
    await using client = await FrameClient.connect(gate);
    // SETTINGS_INITIAL_WINDOW_SIZE: 0
    client.send(frame(FRAME.settings, 0, 0, Buffer.from([0, 4, 0, 0, 0, 0])));
    client.get(1, to("/public/big"));
    await until(() => client.of(FRAME.headers).length > 0);
    expect(client.of(FRAME.data)).toEqual([]);
    const grant = Buffer.alloc(4);
    grant.writeUInt32BE(2 * BIG);
    client.send(frame(FRAME.windowUpdate, 0, 0, grant), frame(FRAME.windowUpdate, 0, 1, grant));
    const received = (): number =>
      client.of(FRAME.data).reduce((sum, { payload }) => sum + payload.length, 0);
    await until(() => received() === BIG);
  });
});

describe("with time limits", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: {
      server: {
        http2: true,
        tls: "off",
        timeouts: { header: "400ms", request: "400ms", keepAlive: "400ms" },
        drain: { timeout: "400ms" },
      },
    },
  });

  it("answers a body that does not end with 408, and closes a connection without requests", async () => {
    const { gate } = standing();
    await using client = await connectHttp2({ port: gate.port });
    const stream = client.open({ ":method": "POST", ":path": "/public/x" }, { endStream: false });
    stream.on("error", () => undefined);
    let status: unknown;
    stream.on("response", (headers) => (status = headers[":status"]));
    let left = false;
    client.session.on("close", () => (left = true));
    stream.write("half");
    await until(() => status !== undefined);
    expect(status).toBe(408);
    stream.resume();
    await until(() => left);
  });

  it("sends GOAWAY when it stops, and answers current requests", async () => {
    const { gate } = standing();
    await using client = await FrameClient.connect(gate);
    client.get(1, to("/public/hang"));
    client.get(3);
    await until(() => client.of(FRAME.data).length > 0);
    const stopped = gate.stop();
    await until(() => client.of(FRAME.goAway).length > 0);
    expect(client.of(FRAME.goAway)[0]?.payload.readUInt32BE()).toBe(2 ** 31 - 1);
    await stopped;
    await until(() => client.closed);
    // The one whose backend hangs.
    expect(client.of(FRAME.headers).map(({ stream }) => stream)).toEqual([3, 1]);
  });
});
