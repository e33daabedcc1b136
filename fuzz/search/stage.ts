import { setTimeout as delay } from "node:timers/promises";
import { type Backend, startBackend } from "../backend/backend.ts";
import { type Fault, fault } from "../judge/fault.ts";
import { show } from "../judge/forwarded.ts";
import { judge } from "../judge/judge.ts";
import { judgeStreams } from "../judge/streams.ts";
import { HUNG_MS, judgeLap } from "../judge/time.ts";
import { type StartSubject, type Subject, TRUSTED_FROM } from "../subject/subject.ts";
import { type Case, converse } from "../wire/converse.ts";
import { converseStreams } from "../wire/converse-streams.ts";
import { admitted, PLAIN } from "../wire/dial.ts";

/** The result of one case. */
export interface Verdict {
  readonly faults: readonly Fault[];
  /** Requests that reached the backend, and answers that the proxy generated. */
  readonly forwarded: number;
  readonly refused: number;
}

/** A case that has been played. */
export interface Played {
  /** Called a while later, when all its requests have arrived. */
  verdict(): Verdict;
  /** Called much later: returns the faults of requests that arrived after the verdict. After that, none is expected. */
  afterwards(): readonly Fault[];
}

/** How long the backend may take to receive what a client sent before it left, in milliseconds. */
const SETTLE_MS = 40;

/** Maximum memory of a proxy, in bytes: above its budget for buffers plus its memory at rest when run from sources. */
const MAX_RESIDENT = 450 * 1024 * 1024;

/** The number of requests after a start that are not judged. */
const SETTLING = 30;

/** A request that must always succeed. */
export const CANARY: Case = {
  rounds: [["GET /public/canary HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]],
  patient: false,
};

/** A proxy in front of the recording backend. A proxy that has ended is restarted. */
export class Stage implements AsyncDisposable {
  readonly #start: StartSubject;
  readonly #secure: boolean;
  readonly #backend: Backend;
  #subject: Subject;
  #clients = 0;

  private constructor(start: StartSubject, secure: boolean, backend: Backend, subject: Subject) {
    this.#start = start;
    this.#secure = secure;
    this.#backend = backend;
    this.#subject = subject;
  }

  /** @param secure whether the proxy speaks TLS. */
  static async open(start: StartSubject, secure = false): Promise<Stage> {
    const backend = await startBackend();
    const stage = new Stage(start, secure, backend, await start(backend.url, secure));
    await stage.#settle();
    return stage;
  }

  get subject(): Subject {
    return this.#subject;
  }

  async play(play: Case): Promise<Played> {
    const { dial = PLAIN, frames = false, rounds, answer } = play;
    const local = this.#nextClient(dial.trusted);
    const client = admitted(dial, local, rounds.flat().join(""), frames)?.client ?? local;
    const { arrivals: all } = this.#backend;
    const arrivals = all.expect(client, answer);
    const subject = this.#subject;
    const talk = await (frames ? converseStreams : converse)(subject, local, play);
    let judged = 0;
    const faults = (): Fault[] => {
      judged = arrivals.length;
      return "answers" in talk
        ? judge({ talk, arrivals }, subject)
        : judgeStreams(talk, arrivals, subject);
    };
    return {
      verdict() {
        const answered = "answers" in talk ? talk.answers.whole.length : talk.answered;
        const refused = Math.max(answered - arrivals.length, 0);
        return { faults: faults(), forwarded: arrivals.length, refused };
      },
      afterwards() {
        all.forget(client);
        return arrivals.length === judged ? [] : faults();
      },
    };
  }

  /** Plays a case alone, and attributes everything that goes wrong meanwhile to it. */
  async playAlone(play: Case): Promise<readonly Fault[]> {
    await this.revive();
    this.troubles();
    await this.stalls();
    const played = await this.play(play);
    if (!this.#subject.exited()) await this.play(this.#canary);
    await delay(SETTLE_MS);
    const stalls = await this.stalls();
    return [...played.verdict().faults, ...played.afterwards(), ...stalls, ...this.troubles()];
  }

  /** Returns the faults since the last call that belong to no single case. */
  troubles(): Fault[] {
    const { strays, broken } = this.#backend.arrivals;
    return [
      ...strays
        .splice(0)
        .map(({ request }) => fault("smuggled", `${request.method} ${show(request.target)}`)),
      ...broken.splice(0).map((bytes) => fault("malformed", show(bytes))),
      ...this.#subject.troubles().map((text) => fault("trouble", text)),
    ];
  }

  /** Returns a fault if the event loop has stalled since the last call. A proxy that has ended is a different fault. */
  async stalls(): Promise<Fault[]> {
    const { loop, exited } = this.#subject;
    if (loop === undefined || exited()) return [];
    const lap = await loop.lap(HUNG_MS);
    return exited() ? [] : judgeLap(lap);
  }

  /** Returns a fault if the process uses more memory than its limits justify. */
  async growth(): Promise<Fault[]> {
    const bytes = await this.#subject.residentBytes();
    return bytes > MAX_RESIDENT ? [fault("memory", `${Math.round(bytes / 2 ** 20)} MiB`)] : [];
  }

  /** Restarts the proxy if it has ended, or hangs. */
  async revive(): Promise<void> {
    if (!this.#subject.exited() && (await this.#subject.alive())) return;
    await this.#subject[Symbol.asyncDispose]();
    this.#subject = await this.#start(this.#backend.url, this.#secure);
    await this.#settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#subject[Symbol.asyncDispose]();
    await this.#backend[Symbol.asyncDispose]();
  }

  /** Waits until the start is over, which blocks the event loop for long, and all code has run once. */
  async #settle(): Promise<void> {
    for (let turn = 0; turn < SETTLING; turn += 1) (await this.play(this.#canary)).afterwards();
    await this.stalls();
  }

  get #canary(): Case {
    return this.#secure ? { ...CANARY, dial: { ...PLAIN, secure: true } } : CANARY;
  }

  /** Returns a unique address in 127.0.0.0/8 for each case, so that the backend can attribute requests. */
  #nextClient(trusted: boolean): string {
    this.#clients = (this.#clients + 1) % 0x7c_00_00;
    const number = this.#clients + (trusted ? TRUSTED_FROM : 0x02_00_00);
    return `127.${number >> 16}.${(number >> 8) & 0xff}.${number & 0xff}`;
  }
}
