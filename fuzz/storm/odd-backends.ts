import { createServer, type Socket } from "node:net";
import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { createServer as createHttpServer } from "node:http";
import { createDice, type Dice } from "../../soak/dice.ts";
import {
  ACK,
  END_STREAM,
  FRAME,
  frame,
  type Frame,
  FrameReader,
} from "../../tools/selftest/http2/http2-frames.ts";
import { listening } from "../../test/support/listening.ts";
import type { TargetName } from "./front.ts";
import type { Kinds } from "./kinds.ts";
import { oddMessage, oddSwitch } from "./odd-messages.ts";
import { oddStart, oddStreamAnswer, uint32 } from "./odd-streams.ts";
import { follow } from "./script.ts";

/** What a client writes into an upload more than `LATE_MS` after its token was revoked. */
export const lateMark = (upload: number): string => `[late part of upload ${upload}]`;
const LATE_MARK = /\[late part of upload (\d+)\]/g;

/** When an honest backend answers that reads a body first: some tokens have been revoked by then. */
const ANSWERED_AFTER_MS = 900;

/** The backends that answer oddly, and honest ones that are unavailable. */
export interface OddBackends extends AsyncDisposable {
  /** They answer oddly, honestly with 503 (`busy-`), or late or never (`reading-`). */
  readonly targets: Readonly<Record<Exclude<TargetName, `innocent-${string}`>, string>>;
  /** Uploads of which something arrived that was sent long after their token had been revoked. */
  readonly outlived: ReadonlySet<number>;
  /** Returns how many streams are open on connections over HTTP/2. */
  openStreams(): number;
}

export async function startOddBackends(seed: number, kinds: Kinds): Promise<OddBackends> {
  const outlived = new Set<number>();
  const sockets = new Set<Socket>();
  const streams = new Set<OddStreams>();
  let connections = 0;
  let answers = 0;
  const opened = (socket: Socket): Dice => {
    sockets.add(socket);
    // One for each answer that is due.
    socket.setMaxListeners(0);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (bytes: Buffer) => {
      for (const [, upload] of bytes.toString("latin1").matchAll(LATE_MARK))
        outlived.add(Number(upload));
    });
    connections += 1;
    return createDice(seed * 31 + connections);
  };
  const odd = { noDelay: true, allowHalfOpen: true };
  const http1 = await listening(
    createServer(odd, (socket) => new OddMessages(socket, opened(socket), kinds)),
  );
  const h2c = await listening(
    createServer(odd, (socket) => {
      const connection = new OddStreams(socket, opened(socket), kinds);
      streams.add(connection);
      socket.on("close", () => streams.delete(connection));
    }),
  );
  const busyHttp1 = createHttpServer((_request, response) => {
    response.writeHead(503).end();
  });
  const busyH2c = createHttp2Server();
  busyH2c.on("session", (session) => session.on("error", () => undefined));
  busyH2c.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => undefined);
    stream.respond({ ":status": 503 });
    stream.end();
  });
  const readingHttp1 = createServer((socket) => socket.resume());
  const readingH2c = createHttp2Server();
  readingH2c.on("session", (session) => session.on("error", () => undefined));
  readingH2c.on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => undefined).resume();
    answers += 1;
    if (answers % 2 === 0) return;
    setTimeout(() => {
      if (stream.destroyed || stream.closed) return;
      stream.respond({ ":status": 200 });
      stream.end();
    }, ANSWERED_AFTER_MS);
  });
  const honest = await Promise.all(
    [busyHttp1, busyH2c, readingHttp1, readingH2c].map((server) => {
      server.on("connection", opened);
      return listening(server);
    }),
  );
  const [busy1 = "", busy2 = "", reading1 = "", reading2 = ""] = honest.map(({ url }) => url);
  return {
    targets: {
      http1: http1.url,
      h2c: h2c.url,
      "busy-http1": busy1,
      "busy-h2c": busy2,
      "reading-http1": reading1,
      "reading-h2c": reading2,
    },
    outlived,
    openStreams: () => [...streams].reduce((sum, each) => sum + each.open, 0),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await Promise.all([http1, h2c, ...honest].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

/** A connection over HTTP/1.1 whose requests get odd answers. */
class OddMessages {
  readonly #socket: Socket;
  readonly #dice: Dice;
  readonly #kinds: Kinds;
  #head = "";
  /** Whether the end of the current body has not been seen yet. */
  #inBody: RegExp | number | undefined;
  #tunnel = false;

  constructor(socket: Socket, dice: Dice, kinds: Kinds) {
    this.#socket = socket;
    this.#dice = dice;
    this.#kinds = kinds;
    socket.on("data", (bytes: Buffer) => this.#read(bytes));
    socket.on("end", () => socket.end());
  }

  #read(bytes: Buffer): void {
    if (this.#tunnel) {
      if (this.#dice.between(0, 3) > 0 && this.#socket.writable) this.#socket.write(bytes);
      return;
    }
    if (this.#inBody instanceof RegExp) {
      if (this.#inBody.test(bytes.toString("latin1"))) this.#inBody = undefined;
      return;
    }
    if (this.#inBody !== undefined) {
      const left = this.#inBody - bytes.length;
      this.#inBody = left > 0 ? left : undefined;
      return;
    }
    this.#head += bytes.toString("latin1");
    const end = this.#head.indexOf("\r\n\r\n");
    if (end === -1) return;
    const [head, rest] = [this.#head.slice(0, end), this.#head.slice(end + 4)];
    this.#head = "";
    this.#answer(head);
    this.#await(head, rest);
  }

  #await(head: string, rest: string): void {
    const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0) - rest.length;
    if (length > 0) this.#inBody = length;
    if (/^transfer-encoding:/im.test(head)) {
      const last = /(?:^|\r\n)0\r\n(?:[^\r\n]+\r\n)*\r\n$/;
      if (!last.test(rest)) this.#inBody = last;
    }
  }

  #answer(head: string): void {
    const key = /^sec-websocket-key: *(\S+)/im.exec(head)?.[1];
    this.#tunnel = key !== undefined;
    const script =
      key === undefined
        ? oddMessage(this.#dice, this.#kinds)
        : oddSwitch(this.#dice, this.#kinds, key);
    void follow(this.#socket, script);
  }
}

/** A connection over HTTP/2 whose streams get odd answers. */
class OddStreams {
  readonly #socket: Socket;
  readonly #dice: Dice;
  readonly #kinds: Kinds;
  readonly #reader = new FrameReader();
  #preface = 24;
  /** Streams that the proxy has neither completed nor reset, and the backend has not reset. */
  readonly #open = new Set<number>();
  /** Whether the proxy may consider all streams as ended. */
  #excused = false;

  constructor(socket: Socket, dice: Dice, kinds: Kinds) {
    this.#socket = socket;
    this.#dice = dice;
    this.#kinds = kinds;
    socket.write(oddStart(dice, kinds));
    socket.on("data", (bytes: Buffer) => {
      const frames = bytes.subarray(Math.min(this.#preface, bytes.length));
      this.#preface -= bytes.length - frames.length;
      for (const each of this.#reader.read(frames)) this.#take(each);
    });
    socket.on("end", () => socket.end());
  }

  /** Streams that wait for the proxy. */
  get open(): number {
    return this.#socket.destroyed || this.#excused ? 0 : this.#open.size;
  }

  async #answer(stream: number): Promise<void> {
    const script = oddStreamAnswer(this.#dice, this.#kinds, stream);
    await follow(this.#socket, script);
    const sent = new FrameReader().read(Buffer.concat(script.map(({ bytes }) => bytes)));
    if (sent.some((each) => each.type === FRAME.reset && each.stream === stream))
      this.#open.delete(stream);
    this.#excused ||=
      sent.some(({ type }) => type === FRAME.goAway) ||
      script.some(({ close }) => close === "deaf");
  }

  #take({ type, flags, stream, payload }: Frame): void {
    if (!this.#socket.writable) return;
    if (type === FRAME.settings && (flags & ACK) === 0) {
      this.#socket.write(frame(FRAME.settings, ACK, 0));
    } else if (type === FRAME.ping && (flags & ACK) === 0) {
      this.#socket.write(frame(FRAME.ping, ACK, 0, payload));
    } else if (type === FRAME.headers && !this.#open.has(stream)) {
      this.#open.add(stream);
      void this.#answer(stream);
    } else if (type === FRAME.data && payload.length > 0) {
      const credit = uint32(payload.length);
      this.#socket.write(frame(FRAME.windowUpdate, 0, 0, credit));
      if ((flags & END_STREAM) === 0)
        this.#socket.write(frame(FRAME.windowUpdate, 0, stream, credit));
    }
    const ends = type === FRAME.headers || type === FRAME.data ? (flags & END_STREAM) !== 0 : false;
    if (type === FRAME.reset || ends) this.#open.delete(stream);
  }
}
