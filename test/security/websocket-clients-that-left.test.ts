/**
 * Clients that have left. After an upgrade nothing reads the client's socket until the backend has switched
 * protocols, so the FIN of a client that has closed goes unnoticed. A client that sends a handshake and closes at
 * once occupies a slot at the backend, or in the queue before it, until the handshake times out; a few dozen per
 * second occupy all of them. Sallyport reads the socket all the time. A client that has closed releases its slot at
 * once, whatever it sent before; early frames are buffered, in order and up to a limit, and reach the backend after
 * its 101.
 *
 * An open WebSocket ends soon after one side has sent a FIN without a close frame, even if the other side keeps its half of
 * the connection open. Otherwise it would be counted, and occupy two sockets, until `websocket.idle`.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { ask } from "../support/ask.ts";
import { expectEnvelope } from "../support/envelope.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame as h2Frame,
  FrameClient,
  headerBlock,
} from "../support/http2-frames.ts";
import { listening } from "../support/listening.ts";
import { useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const PLACES = 2;
const WAITING = 6;

const SWITCH = request([
  ...["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"],
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
]);

/** The 101 for a handshake (RFC 6455 §4.2.2). */
function switched(handshake: string): string {
  const [, key = ""] = /^sec-websocket-key: (.*)$/im.exec(handshake) ?? [];
  const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const accept = createHash("sha1")
    .update(key.trim() + guid)
    .digest("base64");
  return SWITCH.replace(/(?<=Accept: ).*/, accept);
}

/** Far below `websocket.idle`, in milliseconds. */
const SOON_MS = 3_000;

const script: RawScript = ({ startLine }) => {
  if (startLine.includes("/silent")) return "hang";
  if (startLine.includes("/switch")) return { write: SWITCH };
  return { write: request(["HTTP/1.1 200 OK", "Content-Length: 2"], "ok") };
};

const upgrade = (name: string): string =>
  request([
    ...[`GET /public/${name} HTTP/1.1`, "Host: localhost", "Connection: Upgrade"],
    ...["Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]);

/** Returns a masked text frame (RFC 6455 §5.2) of `letter` repeated; the mask is zero. */
function frame(letter: string, bytes: number): string {
  const length = String.fromCharCode(0xfe, bytes >> 8, bytes & 0xff);
  return `\x81${length}\0\0\0\0${letter.repeat(bytes)}`;
}

/** What clients have sent after their handshake before they close. */
const BEHIND = {
  nothing: "",
  "a frame": frame("a", 200),
  "half a frame": frame("a", 200).slice(0, 50),
};

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: {
      upstreams: {
        app: {
          connections: PLACES,
          queue: { length: WAITING, timeout: "5m" },
          websocket: { handshake: "5m" },
        },
      },
    },
  });

  const untilLoad = (inFlight: number, waiting: number): Promise<void> =>
    until(async () => {
      const { value } = await scrape(standing().gate);
      return (
        value('sallyport_upstream_requests_in_flight{upstream="app"}') === inFlight &&
        value('sallyport_upstream_queue_length{upstream="app"}') === waiting
      );
    });

  async function open(bytes: string): Promise<Socket> {
    const socket = await openSocket(standing().gate);
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => undefined).resume();
    socket.write(Buffer.from(bytes, "latin1"));
    return socket;
  }

  it.each(Object.entries(BEHIND))("releases their slots, with %s sent", async (_what, bytes) => {
    const { gate, backend } = standing();
    const sockets: Socket[] = [];
    for (let i = 0; i < PLACES + WAITING; i += 1)
      sockets.push(await open(upgrade("silent") + bytes));
    await untilLoad(PLACES, WAITING);
    // The line of an earlier request may come late.
    const lines = () => gate.log().filter(({ path }) => path === "/public/silent");
    const before = lines().length;
    const [first, second, ...waiting] = sockets;
    for (const socket of waiting) socket.end();
    await untilLoad(PLACES, 0);
    for (const socket of [first, second]) socket?.end();
    await untilLoad(0, 0);
    // Waiting ones never reached the backend.
    expect(backend.seen()).toHaveLength(PLACES);
    const held = backend.connections.filter(({ requests }) => requests.length > 0);
    await until(() => held.every(({ socket }) => socket.destroyed));
    await until(() => lines().length >= before + sockets.length);
    expect(lines().slice(before)).toEqual(
      sockets.map(() => expect.objectContaining({ status: 499, reason: "aborted" })),
    );
    expect((await ask(gate, "/public/x")).status).toBe(200);
  });

  it("passes on early frames after the 101, in order", async () => {
    const { backend } = standing();
    const holders = [await open(upgrade("silent")), await open(upgrade("silent"))];
    await untilLoad(PLACES, 0);
    const early = await open(upgrade("switch") + frame("a", 300));
    await untilLoad(PLACES, 1);
    let answer = "";
    early.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
    early.write(frame("b", 30_000), "latin1");
    await new Promise((resolve) => early.write(frame("c", 300), "latin1", resolve));
    for (const holder of holders) holder.end();
    await until(() => answer.includes("101 Switching Protocols"));
    early.write(frame("d", 300), "latin1");
    const sent = frame("a", 300) + frame("b", 30_000) + frame("c", 300) + frame("d", 300);
    const switched = backend.connections.find((connection) =>
      connection.received().toString("latin1").startsWith("GET /public/switch"),
    );
    const frames = (): string => switched?.received().toString("latin1").split("\r\n\r\n")[1] ?? "";
    await until(() => frames().length >= sent.length);
    expect(frames()).toBe(sent);
    early.destroy();
    await untilLoad(0, 0);
  });

  it("refuses a client that keeps sending before it has an answer", async () => {
    const { gate, backend } = standing();
    const flood = upgrade("silent") + frame("a", 60_000).repeat(4);
    const answer = await exchange(gate, flood, { responses: Infinity });
    expectEnvelope(answer.last, 400);
    await untilLoad(0, 0);
    const received = backend.connections.map((each) => each.received().toString("latin1"));
    expect(received.join("")).not.toContain("aaaa");
  });
});

describe("an open WebSocket", () => {
  const stack = new AsyncDisposableStack();
  afterAll(() => stack.disposeAsync());
  /** Connections of a backend that never ends its half. */
  const backends: Socket[] = [];
  let gate: Sallyport;
  beforeAll(async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      backends.push(socket);
      socket.on("error", () => undefined).on("data", () => undefined);
      socket.once("data", (sent: Buffer) => socket.write(switched(String(sent))));
    });
    const backend = stack.use(await listening(server));
    stack.defer(() => {
      for (const socket of backends) socket.destroy();
    });
    gate = stack.use(
      await startSallyport({
        target: backend.url,
        withoutToken: true,
        config: { server: { tls: "off", http2: true } },
      }),
    );
  });

  const openNow = async (): Promise<number | undefined> =>
    (await scrape(gate)).value('sallyport_websocket_connections{route="public"}');

  const expectEnded = async (): Promise<void> => {
    await until(async () => (await openNow()) === 0, SOON_MS);
    // A write to a connection that the other side has closed is answered by a reset.
    await until(() => {
      for (const socket of backends) if (socket.writable) socket.write("x");
      return backends.every(({ destroyed }) => destroyed);
    }, SOON_MS);
  };

  async function openHttp1(): Promise<Socket> {
    const socket = connect({ port: gate.port, host: "127.0.0.1", allowHalfOpen: true });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => undefined).write(upgrade("x"));
    const [first] = await once(socket, "data");
    expect(String(first)).toContain(" 101 ");
    socket.resume();
    await until(async () => (await openNow()) === 1);
    return socket;
  }

  it("ends soon after the client's FIN", async () => {
    (await openHttp1()).end();
    await expectEnded();
  });

  it("ends soon after the backend's FIN", async () => {
    await openHttp1();
    backends.at(-1)?.end();
    await expectEnded();
  });

  it.each([
    ["stream", (client: FrameClient) => client.send(h2Frame(FRAME.data, END_STREAM, 1))],
    ["connection", ({ socket }: FrameClient) => socket.end()],
  ])("ends soon after the FIN of its client's HTTP/2 %s", async (_what, leave) => {
    await using client = await FrameClient.connect(gate);
    const head = [
      [":method", "CONNECT"],
      [":protocol", "websocket"],
      [":scheme", "http"],
      [":authority", "localhost"],
      [":path", "/public/x"],
      ["sec-websocket-version", "13"],
    ] as const;
    client.send(h2Frame(FRAME.headers, END_HEADERS, 1, headerBlock(head)));
    await until(async () => (await openNow()) === 1);
    leave(client);
    await expectEnded();
  });
});
