import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { nodeHttp2 } from "../../lib/http/node-http2.ts";
import { ACK, FRAME, frame, type Frame, FrameReader } from "./http2-frames.ts";

/** What came back on one stream. */
export interface StreamAnswer {
  /** Of the final answer; 0 if there is none. */
  status: number;
  /** Names and values, alternating, without pseudo-header fields. */
  fields: readonly string[];
  trailers: readonly string[];
  /** As latin1. */
  body: string;
  /** Whether the stream has ended in order. */
  complete: boolean;
  /** The error code, if it was reset by the other side. */
  reset: number | undefined;
}

/** The bytes of a preface (RFC 9113 §3.4). */
const PREFACE_BYTES = 24;
/** What Node may write by itself: everything else is written by the attack. */
const OWN_FRAMES: ReadonlySet<number> = new Set([FRAME.settings, FRAME.ping, FRAME.windowUpdate]);
/** What the other side may send on each stream, in bytes. */
const WINDOW = 2 ** 24;

/**
 * A connection of HTTP/2 on which any bytes can be written. Node reads what comes back: it believes that it has opened the
 * streams, but the frames that it writes for them are left out.
 */
export class FramedSession {
  /** In the order of the methods: those of the streams 1, 3, 5… */
  readonly answers: readonly StreamAnswer[];
  /** Resolves when the other side has sent its settings, or the connection has ended. */
  readonly begun: Promise<void>;
  /** Called when anything has changed. */
  onChange: () => void = () => undefined;
  readonly #socket: Socket;
  readonly #session: ClientHttp2Session;
  /** What is to be written once preface and settings are out. */
  #early: Buffer[] | undefined = [];
  #goAway = false;
  #settled = false;
  /** Of settings: Node has sent them once. */
  #acknowledged = false;

  /**
   * @param socket is connected.
   * @param methods of the requests on the streams 1, 3, 5…: an answer to HEAD has no body.
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

  /** Whether the other side has spoken HTTP/2. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Whether the other side has closed the connection, or said that it takes no more. */
  get ended(): boolean {
    return this.#goAway || this.#socket.destroyed || this.#socket.readableEnded;
  }

  /** Writes frames, well formed or not, behind the preface. */
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

  /** What Node takes for its connection. */
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
        // The settings come first (RFC 9113 §3.4).
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

  /** Node would take what it has not asked for as the end of the connection. */
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
      ...{ status: 0, fields: [], trailers: [], body: "" },
      ...{ complete: false, reset: undefined },
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

/** Whether a frame belongs to the connection, and not to a stream that Node believes to have. */
function isOwn({ type, stream, flags }: Frame): boolean {
  return stream === 0 && OWN_FRAMES.has(type) && (type !== FRAME.ping || flags === ACK);
}
