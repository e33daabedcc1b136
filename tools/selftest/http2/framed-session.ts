import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import { nodeHttp2 } from "../../../src/lib/http/node-http.ts";
import { ACK, FRAME, frame, type Frame, FrameReader } from "./http2-frames.ts";
import { type Exchanged, onConnection, type Peer } from "../raw-exchange.ts";

/** The response on one stream. */
export interface StreamAnswer {
  /** Status of the final response; 0 if there is none. */
  status: number;
  /** Alternating names and values, without pseudo-header fields. */
  fields: readonly string[];
  trailers: readonly string[];
  /** As latin1. */
  body: string;
  /** Whether the stream ended with END_STREAM. */
  complete: boolean;
  /** The error code if the other side reset the stream. */
  reset: number | undefined;
}

/** Length of the client connection preface (RFC 9113 §3.4), in bytes. */
const PREFACE_BYTES = 24;
/** The frames that Node may write; the attack writes all others. */
const OWN_FRAMES: ReadonlySet<number> = new Set([FRAME.settings, FRAME.ping, FRAME.windowUpdate]);
/** Initial flow-control window of each stream, in bytes. */
const WINDOW = 2 ** 24;

/**
 * An HTTP/2 connection on which the caller can write any bytes. Node parses the responses: it opens the streams, but
 * the frames that it writes for them are dropped.
 */
export class FramedSession {
  /** The responses on streams 1, 3, 5…, in the order of the methods. */
  readonly answers: readonly StreamAnswer[];
  /** Resolves once the other side has sent its settings, or the connection has ended. */
  readonly begun: Promise<void>;
  /** Called when a stream or the connection ends. */
  onChange: () => void = () => undefined;
  readonly #socket: Socket;
  readonly #session: ClientHttp2Session;
  /** Bytes to write once preface and settings have been written; undefined afterwards. */
  #early: Buffer[] | undefined = [];
  #goAway = false;
  #settled = false;
  /** Whether the other side has acknowledged the settings, which Node sends once. */
  #acknowledged = false;

  /**
   * @param socket a connected socket.
   * @param methods the methods of the requests on streams 1, 3, 5…: a response to HEAD has no body.
   */
  constructor(socket: Socket, methods: readonly string[]) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket = socket;
    this.begun = promise;
    this.#session = nodeHttp2().connect("http://framed.invalid", {
      createConnection: () => this.#between(),
      settings: { enablePush: false, initialWindowSize: WINDOW },
    });
    this.#session.on("error", () => undefined);
    this.#session.on("goaway", () => (this.#goAway = true));
    this.#session.once("close", () => {
      this.#goAway = true;
      this.onChange();
    });
    this.#session.once("remoteSettings", () => {
      this.#settled = true;
      resolve();
    });
    socket.once("close", () => {
      resolve();
      this.#session.destroy();
      this.onChange();
    });
    this.answers = methods.map((method) => this.#open(method));
  }

  /** Whether the other side has sent its HTTP/2 settings. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Whether the other side has closed the connection or sent GOAWAY. */
  get ended(): boolean {
    return this.#goAway || this.#socket.destroyed || this.#socket.readableEnded;
  }

  /** Writes frames, well-formed or not, after preface and settings. */
  send(bytes: Buffer): void {
    if (this.#early !== undefined) this.#early.push(bytes);
    else this.#write(bytes);
  }

  #write(bytes: Buffer): void {
    if (this.#socket.writable && bytes.length > 0) this.#socket.write(bytes);
  }

  close(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }

  /** Returns the stream that Node uses as its connection; it filters the frames in both directions. */
  #between(): Duplex {
    const socket = this.#socket;
    const reader = new FrameReader();
    let skip = PREFACE_BYTES;
    const duplex = new Duplex({
      read: () => void socket.resume(),
      write: (chunk: Buffer, _encoding, done) => {
        const preface = chunk.subarray(0, skip);
        skip -= preface.length;
        const own = reader.read(chunk.subarray(preface.length)).filter(isOwn);
        const bytes = own.map(({ type, flags, stream, payload }) =>
          frame(type, flags, stream, payload),
        );
        this.#write(Buffer.concat([preface, ...bytes]));
        // SETTINGS must be the first frame (RFC 9113 §3.4).
        if (own.length > 0) this.#sendEarly();
        done();
      },
    });
    const received = new FrameReader();
    socket.on("data", (chunk: Buffer) => {
      const frames = received.read(chunk).filter((each) => this.#isForNode(each));
      const bytes = frames.map(({ type, flags, stream, payload }) =>
        frame(type, flags, stream, payload),
      );
      if (bytes.length > 0 && !duplex.push(Buffer.concat(bytes))) socket.pause();
    });
    socket.once("end", () => void duplex.push(null));
    socket.once("close", () => duplex.destroy());
    return duplex;
  }

  /** Node would end the connection if it received acknowledgements or resets that do not belong to its own frames. */
  #isForNode({ type, flags, stream }: Frame): boolean {
    const acknowledges = (flags & ACK) !== 0;
    if (type === FRAME.ping) return !acknowledges;
    if (type === FRAME.settings && acknowledges) {
      const isFirst = !this.#acknowledged;
      this.#acknowledged = true;
      return isFirst;
    }
    return type !== FRAME.reset || stream < 2 * this.answers.length;
  }

  #sendEarly(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const bytes of early) this.#write(bytes);
  }

  #open(method: string): StreamAnswer {
    const answer: StreamAnswer = {
      status: 0,
      fields: [],
      trailers: [],
      body: "",
      complete: false,
      reset: undefined,
    };
    const fields = { ":method": method === "HEAD" ? "HEAD" : "GET", ":path": "/" };
    const stream = this.#session.request(fields, { endStream: false });
    stream.on("error", () => undefined);
    readAnswer(stream, answer);
    stream.once("close", () => {
      const { rstCode } = stream;
      if (!answer.complete && answer.reset === undefined && rstCode !== 0) answer.reset = rstCode;
      this.onChange();
    });
    stream.once("end", () => {
      answer.complete = answer.status !== 0 && stream.rstCode === 0;
      this.onChange();
    });
    return answer;
  }
}

function readAnswer(stream: ClientHttp2Stream, answer: StreamAnswer): void {
  stream.on("response", (...[headers, , raw]: [Record<string, unknown>, number, string[]]) => {
    answer.status = Number(headers[":status"]);
    answer.fields = withoutPseudo(raw);
  });
  stream.on("trailers", (...[, , raw]: [unknown, number, string[]]) => (answer.trailers = raw));
  stream.on("data", (chunk: Buffer) => (answer.body += chunk.toString("latin1")));
}

function withoutPseudo(raw: readonly string[]): string[] {
  return raw.filter((_, i) => raw[i - (i % 2)]?.startsWith(":") === false);
}

/** Whether Node may write a frame: only frames of the connection, no frames of streams. */
function isOwn({ type, stream, flags }: Frame): boolean {
  return stream === 0 && OWN_FRAMES.has(type) && (type !== FRAME.ping || flags === ACK);
}

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
