import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { type Answers, readAnswers } from "./answers.ts";
import { admitted, type Dial, dialled, type Listener, PLAIN } from "./dial.ts";
import { type Reading, readRequests } from "./requests.ts";

/** What a backend sends besides a plain answer. Texts are bytes as latin1. */
export interface AnswerStyle {
  /** Interim answers before it. */
  readonly interim: string;
  /** Further lines of its head, each with its end. */
  readonly fields: string;
}

/** What one client does on one connection. Texts are bytes as latin1. */
export interface Case {
  /** How the connection begins; without TLS when left out. */
  readonly dial?: Dial;
  /** Whether the rounds are frames of HTTP/2, behind a preface. Each ends with a whole frame. */
  readonly frames?: boolean;
  /** Each round is written piece by piece; between two rounds the client waits for the answers so far. */
  readonly rounds: readonly (readonly string[])[];
  /** What the backend's answers to it look like; plain ones when left out. */
  readonly answer?: AnswerStyle;
  /** Whether it waits for a limit of the proxy's when its request is not whole; else it ends its side. */
  readonly patient: boolean;
}

/** What became of it. */
export interface Talk {
  /** The address that the proxy must take for the client's. */
  readonly client: string;
  /** What a strict reader takes the client's bytes for. */
  readonly reading: Reading;
  /** Of the requests, also of one that cannot be read, as far as can be guessed. */
  readonly methods: readonly string[];
  readonly answers: Answers;
  /** How the connection ended: the other side closed it, it was reset, or nothing happened until the deadline. */
  readonly ended: "closed" | "reset" | "deadline";
  /** How long the handshake of TLS took, in milliseconds, as far as it went; 0 without TLS. */
  readonly handshakeMs: number;
}

/** How long a connection may live, in milliseconds: more than every limit of the proxy together. */
export const DEADLINE_MS = 10_000;
/** How long the proxy may take over a request that reads as unclear before the client ends its side, in milliseconds. */
export const PATIENCE_MS = 150;
/** The same for one that is not whole: what came before it shall be answered first. */
const INCOMPLETE_MS = 15;

/** Plays a case on a connection of its own, from an address of its own. */
export async function converse(
  listener: Listener,
  localAddress: string,
  play: Case,
): Promise<Talk> {
  const { dial = PLAIN } = play;
  const heard = admitted(dial, localAddress, play.rounds.flat().join(""), false);
  const reading = heard === undefined ? NOTHING : readRequests(heard.text);
  const client = new Client(dialled(listener, localAddress, dial), reading);
  const deadline = setTimeout(() => client.giveUp(), DEADLINE_MS);
  let written = "";
  for (const [index, round] of play.rounds.entries()) {
    if (index > 0) await client.answered(readRequests(written).requests.length, PATIENCE_MS);
    for (const piece of round) {
      written += piece;
      await client.write(piece);
    }
  }
  await client.finish(play.patient);
  clearTimeout(deadline);
  const talk = client.talk();
  // What comes back is another protocol's, or nothing.
  if (heard === undefined) return { client: localAddress, ...talk, answers: readAnswers("", []) };
  return { client: heard.client, ...talk };
}

/** Of a connection on which nothing may be served. */
const NOTHING: Reading = { requests: [], begun: undefined, stop: "unclear", rest: "" };

class Client {
  readonly #reading: Reading;
  readonly #methods: readonly string[];
  readonly #socket: Socket;
  readonly #closed = Promise.withResolvers<void>();
  #received = "";
  #ended: Talk["ended"] = "closed";
  readonly #began = performance.now();
  #handshakeMs = 0;
  #onBytes: () => void = () => undefined;

  constructor(socket: Socket, reading: Reading) {
    this.#reading = reading;
    this.#methods = methodsOf(reading);
    this.#socket = socket;
    this.#socket.on("data", (bytes: Buffer) => {
      this.#received += bytes.toString("latin1");
      this.#onBytes();
    });
    this.#socket.on("error", () => {
      if (this.#ended === "closed") this.#ended = "reset";
    });
    const onHandshake = (): void => {
      this.#handshakeMs ||= performance.now() - this.#began;
    };
    if (socket instanceof TLSSocket)
      socket.once("secureConnect", onHandshake).once("close", onHandshake);
    this.#socket.once("close", () => {
      this.#closed.resolve();
      this.#onBytes();
    });
  }

  async write(piece: string): Promise<void> {
    if (!this.#socket.writable) return;
    this.#socket.write(piece, "latin1");
    await nextTurn();
  }

  /** Resolves when so many final answers have come, the connection has ended, or the time is up. */
  async answered(count: number, limitMs = DEADLINE_MS): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => resolve(), limitMs);
    this.#onBytes = () => {
      if (this.#socket.destroyed || this.#answers().whole.length >= count) resolve();
    };
    this.#onBytes();
    await promise;
    clearTimeout(timer);
    this.#onBytes = () => undefined;
  }

  /** Waits for what must come, and ends our side where nothing more is owed. */
  async finish(patient: boolean): Promise<void> {
    const { stop, requests } = this.#reading;
    if (stop === "end" || stop === "closed") await this.answered(requests.length);
    else if (stop === "switched") await this.answered(requests.length, PATIENCE_MS);
    else if (!patient) {
      const limitMs = stop === "incomplete" ? INCOMPLETE_MS : PATIENCE_MS;
      await Promise.race([this.#closed.promise, delay(limitMs, undefined, { ref: false })]);
    }
    if (!patient || (stop !== "incomplete" && stop !== "unclear")) this.#socket.end();
    await this.#closed.promise;
  }

  giveUp(): void {
    this.#ended = "deadline";
    this.#socket.destroy();
  }

  talk(): Omit<Talk, "client"> {
    const [reading, methods] = [this.#reading, this.#methods];
    const [ended, handshakeMs] = [this.#ended, this.#handshakeMs];
    return { reading, methods, answers: this.#answers(), ended, handshakeMs };
  }

  #answers(): Answers {
    return readAnswers(this.#received, this.#methods);
  }
}

/** Of every request that may be answered: what cannot be read is taken for HEAD where it begins so. */
function methodsOf({ requests, begun, rest }: Reading): string[] {
  const methods = requests.map(({ method }) => method);
  const next = begun?.method ?? (/^[\r\n]*HEAD /.test(rest) ? "HEAD" : "GET");
  return [...methods, next];
}
