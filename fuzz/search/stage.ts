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

/** What came of one case. */
export interface Verdict {
  readonly faults: readonly Fault[];
  /** Requests that reached the backend, and answers that the proxy gave by itself. */
  readonly forwarded: number;
  readonly refused: number;
}

/** A case that has been played. */
export interface Played {
  /** Asked for a while later, when all that it caused has arrived. */
  verdict(): Verdict;
  /** Asked for much later: what is wrong with requests that arrived after the verdict. Nothing more is expected then. */
  afterwards(): readonly Fault[];
}

/** How long the backend may take to see what a client sent that is gone already, in milliseconds. */
const SETTLE_MS = 40;

/** The most memory that a proxy may have, in bytes: more than its budget for buffers and what it takes at rest, from sources. */
const MOST_RESIDENT = 450 * 1024 * 1024;

/** Requests after a start of which nothing is expected. */
const SETTLING = 30;

/** A request that nothing can be said against. */
export const CANARY: Case = {
  rounds: [["GET /public/canary HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]],
  patient: false,
};

/** A proxy in front of the capturing backend. A proxy that ended is started anew. */
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

  /** Plays a case with nobody else there, and holds against it whatever goes wrong meanwhile. */
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

  /** What no single case answers for, since the last call. */
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

  /** Whether the event loop stood still since the last call. A proxy that ended is another fault. */
  async stalls(): Promise<Fault[]> {
    const { loop, exited } = this.#subject;
    if (loop === undefined || exited()) return [];
    const lap = await loop.lap(HUNG_MS);
    return exited() ? [] : judgeLap(lap);
  }

  /** Whether the process has grown beyond what its limits account for. */
  async growth(): Promise<Fault[]> {
    const bytes = await this.#subject.residentBytes();
    return bytes > MOST_RESIDENT ? [fault("memory", `${Math.round(bytes / 2 ** 20)} MiB`)] : [];
  }

  /** Starts the proxy anew when it has ended, or hangs. */
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

  /** Lets the start pass, which keeps the event loop busy for long, and the first run of everything. */
  async #settle(): Promise<void> {
    for (let turn = 0; turn < SETTLING; turn += 1) (await this.play(this.#canary)).afterwards();
    await this.stalls();
  }

  get #canary(): Case {
    return this.#secure ? { ...CANARY, dial: { ...PLAIN, secure: true } } : CANARY;
  }

  /** Every case has an address of its own in 127.0.0.0/8, so that the backend knows whose request it has. */
  #nextClient(trusted: boolean): string {
    this.#clients = (this.#clients + 1) % 0x7c_00_00;
    const number = this.#clients + (trusted ? TRUSTED_FROM : 0x02_00_00);
    return `127.${number >> 16}.${(number >> 8) & 0xff}.${number & 0xff}`;
  }
}
