import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { type Answers, readAnswers } from "./answers.ts";
import { admitted, type Dial, dialled, type Listener, PLAIN } from "./dial.ts";
import { type Reading, readRequests } from "./requests.ts";

/** What a backend sends in addition to a plain answer. Texts are bytes in Latin-1. */
export interface AnswerStyle {
  /** Interim answers before it. */
  readonly interim: string;
  /** Further lines of its head, each with its end. */
  readonly fields: string;
}

/** What one client does on one connection. Texts are bytes in Latin-1. */
export interface Case {
  /** How the connection begins; by default, without TLS. */
  readonly dial?: Dial;
  /** Whether the rounds are HTTP/2 frames, after a preface. Each round ends with a complete frame. */
  readonly frames?: boolean;
  /** Each round is written piece by piece; between two rounds, the client waits for the answers so far. */
  readonly rounds: readonly (readonly string[])[];
  /** The style of the backend's answers; by default, plain. */
  readonly answer?: AnswerStyle;
  /** Whether it waits for a time limit of the proxy if its request is incomplete; otherwise it ends its side. */
  readonly patient: boolean;
}

/** The result of a case. */
export interface Talk {
  /** The address that the proxy must take for the client's. */
  readonly client: string;
  /** How a strict parser reads the client's bytes. */
  readonly reading: Reading;
  /** The methods of the requests, guessed for one that cannot be parsed. */
  readonly methods: readonly string[];
  readonly answers: Answers;
  /** How the connection ended: the other side closed it, it was reset, or nothing happened until the deadline. */
  readonly ended: "closed" | "reset" | "deadline";
  /** How long the TLS handshake took until it ended or failed, in milliseconds; 0 without TLS. */
  readonly handshakeMs: number;
}

/** The maximum lifetime of a connection, in milliseconds: more than the sum of all limits of the proxy. */
export const DEADLINE_MS = 10_000;
/** How long the proxy may take for an ambiguous request before the client ends its side, in milliseconds. */
export const PATIENCE_MS = 150;
/** The same for an incomplete one: the requests before it should be answered first. */
const INCOMPLETE_MS = 15;

/** Plays a case on a new connection, from the given address. */
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
  // The answer belongs to another protocol, or there is none.
  if (heard === undefined) return { client: localAddress, ...talk, answers: readAnswers("", []) };
  return { client: heard.client, ...talk };
}

/** The reading of a connection on which nothing may be served. */
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

  /** Resolves when this many final answers have arrived, the connection has ended, or the time is up. */
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

  /** Waits for the expected answers, and then ends our side. */
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

/** Returns the methods of all requests that may be answered; unparsable data counts as HEAD if it begins with that word. */
function methodsOf({ requests, begun, rest }: Reading): string[] {
  const methods = requests.map(({ method }) => method);
  const next = begun?.method ?? (/^[\r\n]*HEAD /.test(rest) ? "HEAD" : "GET");
  return [...methods, next];
}
