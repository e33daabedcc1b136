import { setTimeout as delay } from "node:timers/promises";
import { HEAD_FORMS, headCase } from "../generate/heads.ts";
import { type Fault, MEASURED_KINDS } from "../judge/fault.ts";
import { HUNG_MS, judgeLap } from "../judge/time.ts";
import type { Lap } from "../subject/loop-watch.ts";
import type { StartSubject, Subject } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { CANARY, type Played, Stage } from "./stage.ts";

/** The maximum cost of one case, in milliseconds of CPU time… */
const COST_MS = 5;
/** …or, on a machine where that is more, this multiple of the cost of a plain request. */
const COST_RATIO = 8;
/** How often the event loop is queried during a case, in milliseconds. */
const ASK_EVERY_MS = 500;
/** The number of plain requests of each form to begin with: code costs many times as much when it first runs. */
const WARMING = 100;
const USUAL: readonly Case[] = [
  CANARY,
  ...HEAD_FORMS.map((form) => headCase(form, { target: "/public/a" })),
];
/** A case is played this many times, and the lowest cost counts: garbage collector and compiler run from time to time. */
const TIMES = 3;

const NOTHING: Lap = { spentMs: 0, longestMs: 0 };

const UNPLAYED: Played = {
  verdict: () => ({ faults: [], forwarded: 0, refused: 0 }),
  afterwards: () => [],
};

interface Measured {
  readonly played: Played;
  /** Undefined if the loop hung. */
  readonly lap: Lap | undefined;
}

/** A stage on which cases are played one at a time, to measure the cost of each. */
export class MeasuredStage implements AsyncDisposable {
  readonly #start: StartSubject;
  #stage: Promise<Stage> | undefined;
  #costMs = COST_MS;
  /** Whether the last case hung the proxy. Waiting cases are then skipped, since each may hang it for seconds again. */
  #hung = false;
  #warmed: Subject | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(start: StartSubject) {
    this.#start = start;
  }

  /** The same stage for cases whose content nothing judges, such as paths that only some routes take. */
  readonly ofTime = {
    play: async (play: Case): Promise<Played> => {
      const played = await this.play(play);
      return {
        verdict() {
          const verdict = played.verdict();
          return { ...verdict, faults: verdict.faults.filter(isOfTime) };
        },
        afterwards: () => {
          played.afterwards();
          return [];
        },
      };
    },
    playAlone: async (play: Case): Promise<readonly Fault[]> =>
      judgeLap(await this.leastLap(play), this.#costMs),
  };

  play(play: Case): Promise<Played> {
    return this.#inTurn(async () => {
      if (this.#hung) return UNPLAYED;
      const { played, lap } = await this.#measure(play);
      this.#hung = lap === undefined;
      const faults = judgeLap(lap, this.#costMs);
      return {
        verdict() {
          const verdict = played.verdict();
          return { ...verdict, faults: [...verdict.faults, ...faults] };
        },
        afterwards: () => played.afterwards(),
      };
    });
  }

  /** Returns the faults that occur every time. */
  playAlone(play: Case): Promise<readonly Fault[]> {
    return this.#inTurn(async () => {
      this.#hung = false;
      const laps: Lap[] = [];
      for (let time = 0; time < TIMES; time += 1) {
        const { played, lap } = await this.#measure(play);
        if (lap === undefined) return judgeLap(lap, this.#costMs);
        const { faults } = played.verdict();
        if (faults.length > 0) return faults;
        laps.push(lap);
        if (judgeLap(lap, this.#costMs).length === 0) return [];
      }
      return judgeLap(least(laps), this.#costMs);
    });
  }

  /** Plays a case a few times. @returns its cheapest lap; undefined if it hung the loop. */
  leastLap(play: Case): Promise<Lap | undefined> {
    return this.#inTurn(async () => {
      this.#hung = false;
      const laps: Lap[] = [];
      for (let time = 0; time < TIMES; time += 1) {
        const { lap } = await this.#measure(play);
        if (lap === undefined) return undefined;
        laps.push(lap);
      }
      return least(laps);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last.catch(() => undefined);
    await (await this.#stage)?.[Symbol.asyncDispose]();
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#last.then(step);
    this.#last = result.catch(() => undefined);
    return result;
  }

  async #measure(play: Case): Promise<Measured> {
    return playMeasured(await this.ready(), play);
  }

  /** Warms up a proxy, and measures what a plain request costs on this machine. */
  async #warm(stage: Stage): Promise<void> {
    this.#warmed = stage.subject;
    for (const play of USUAL) {
      const costs: number[] = [];
      for (let i = 0; i < WARMING; i += 1) {
        const { lap } = await playMeasured(stage, play);
        costs.push(lap?.spentMs ?? 0);
      }
      const [usual = 0] = costs.toSorted((a, b) => a - b).slice(WARMING / 10);
      if (play === CANARY) this.#costMs = Math.max(COST_MS, COST_RATIO * usual);
    }
  }

  /** Returns a stage whose proxy is running and warm. */
  async ready(): Promise<Stage> {
    this.#stage ??= Stage.open(this.#start);
    const stage = await this.#stage;
    if (stage.subject.exited()) await stage.revive();
    if (this.#warmed !== stage.subject) await this.#warm(stage);
    return stage;
  }
}

function least(laps: readonly Lap[]): Lap {
  const spentMs = Math.min(...laps.map((lap) => lap.spentMs));
  const longestMs = Math.min(...laps.map((lap) => lap.longestMs));
  return { spentMs, longestMs };
}

function isOfTime({ kind }: Fault): boolean {
  return MEASURED_KINDS.has(kind);
}

async function playMeasured(stage: Stage, play: Case): Promise<Measured> {
  const { subject } = stage;
  await subject.loop?.lap(HUNG_MS);
  const playing = stage.play(play);
  const lap = await lapOf(playing, subject);
  // This also ends the conversation.
  if (lap === undefined) await subject[Symbol.asyncDispose]();
  return { played: await playing, lap };
}

/** Measures the event loop until a case is over; undefined if it hangs. A subject without a loop counts as idle. */
async function lapOf(playing: Promise<unknown>, { loop }: Subject): Promise<Lap | undefined> {
  let spentMs = 0;
  let longestMs = 0;
  for (;;) {
    const over = await Promise.race([
      playing.then(() => true),
      delay(ASK_EVERY_MS, false, { ref: false }),
    ]);
    const lap = loop === undefined ? NOTHING : await loop.lap(HUNG_MS);
    if (lap === undefined) return undefined;
    spentMs += lap.spentMs;
    longestMs = Math.max(longestMs, lap.longestMs);
    if (over) return { spentMs, longestMs };
  }
}
