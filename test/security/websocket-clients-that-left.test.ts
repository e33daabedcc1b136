/**
 * Clients that have left. After an upgrade nothing reads the client's socket until the backend has switched
 * protocols, so the FIN of a client that has closed goes unnoticed. A client that sends a handshake and closes at
 * once occupies a slot at the backend, or in the queue before it, until the handshake times out; a few dozen per
 * second occupy all of them. Sallyport reads the socket all the time. A client that has closed releases its slot at
 * once, whatever it sent before; early frames are buffered, in order and up to a limit, and reach the backend after
 * its 101.
 */
import { describe, expect, it, onTestFinished } from "vitest";
import type { Socket } from "node:net";
import { ask } from "../support/ask.ts";
import { expectEnvelope } from "../support/envelope.ts";
import { useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const PLACES = 2;
const WAITING = 6;

const SWITCH = request([
  ...["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"],
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
]);

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
          ...{ connections: PLACES, queue: { length: WAITING, timeout: "5m" } },
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
    const before = gate.log().length;
    const [first, second, ...waiting] = sockets;
    for (const socket of waiting) socket.end();
    await untilLoad(PLACES, 0);
    for (const socket of [first, second]) socket?.end();
    await untilLoad(0, 0);
    // Waiting ones never reached the backend.
    expect(backend.seen()).toHaveLength(PLACES);
    const held = backend.connections.filter(({ requests }) => requests.length > 0);
    await until(() => held.every(({ socket }) => socket.destroyed));
    await until(() => gate.log().length >= before + sockets.length);
    expect(gate.log().slice(before)).toEqual(
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
