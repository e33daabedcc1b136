import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import { type Exchanged, onConnection, type Peer } from "../raw-exchange.ts";
import { FramedSession, type StreamAnswer } from "./framed-session.ts";
import { FRAME, FrameReader } from "./http2-frames.ts";

/**
 * Writes exactly these frames (a string as latin1) on a new HTTP/2 connection. Closes it once all streams have ended,
 * when the deployment closes it, or after the timeout. Never throws.
 *
 * @param methods the methods of the requests on streams 1, 3, 5…
 */
export function exchangeHttp2(
  peer: Peer,
  bytes: string,
  methods: readonly string[],
): Promise<Exchanged> {
  return onConnection(peer, "h2", (socket) => talk(socket, peer.timeoutMs, bytes, methods));
}

async function talk(
  socket: Socket,
  timeoutMs: number,
  bytes: string,
  methods: readonly string[],
): Promise<Exchanged> {
  const session = new FramedSession(socket, methods);
  const sent = Buffer.from(bytes, "latin1");
  const dropped = droppedIn(sent);
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, timeoutMs);
  session.onChange = () => {
    const open = session.answers.some((answer, i) => !isOver(answer) && !dropped.has(2 * i + 1));
    if (!open || session.ended) resolve();
  };
  session.send(sent);
  await promise;
  clearTimeout(timer);
  const { answers, ended } = session;
  session.close();
  const reset = answers.some((answer) => answer.reset !== undefined);
  return {
    answers: answers.filter(({ status }) => status !== 0),
    end: ended ? "closed" : "open",
    reset,
    raw: answers.map(fieldLines).join("\r\n"),
  };
}

/** Returns the streams that the frames themselves reset. */
function droppedIn(bytes: Buffer): ReadonlySet<number> {
  const frames = new FrameReader().read(bytes);
  return new Set(frames.filter(({ type }) => type === FRAME.reset).map(({ stream }) => stream));
}

function isOver({ complete, reset }: StreamAnswer): boolean {
  return complete || reset !== undefined;
}

/** Returns whether the deployment accepts HTTP/2: with ALPN over TLS, with prior knowledge over plain HTTP. */
export async function offersHttp2(peer: Peer): Promise<boolean> {
  let offers = false;
  await onConnection(peer, "h2", async (socket) => {
    const nothing: Exchanged = { answers: [], end: "closed", raw: "" };
    if (socket instanceof TLSSocket && socket.alpnProtocol !== "h2") return nothing;
    const session = new FramedSession(socket, []);
    await Promise.race([session.begun, delay(peer.timeoutMs, undefined, { ref: false })]);
    offers = session.settled;
    session.close();
    return nothing;
  });
  return offers;
}

function fieldLines({ fields }: StreamAnswer): string {
  return fields.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join("");
}
