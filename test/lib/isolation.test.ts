/** One member of a loop that throws costs only itself: the others run, and the error is reported, as an uncaught one. */
import { expect, test } from "vitest";
import { atEndOfTurn, DeferredQueue } from "../../src/lib/async/end-of-turn.ts";
import { callEach } from "../../src/lib/async/isolation.ts";
import { TimeoutEntry, TimeoutList } from "../../src/lib/async/timeout-list.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { RevocationList } from "../../src/tokens/revocation/revocation-list.ts";
import { until } from "../support/until.ts";

/** Collects uncaught errors instead of vitest, which would fail the run. */
function collectUncaught(): { readonly errors: unknown[] } & Disposable {
  const before = process.listeners("uncaughtException");
  const errors: unknown[] = [];
  const collect = (error: unknown): void => void errors.push(error);
  process.removeAllListeners("uncaughtException").on("uncaughtException", collect);
  return {
    errors,
    [Symbol.dispose]() {
      process.off("uncaughtException", collect);
      for (const listener of before) process.on("uncaughtException", listener);
    },
  };
}

const FAULT = new Error("this one throws");

/** Returns three pieces of work; the second throws. */
function three(): { readonly work: (() => void)[]; readonly ran: string[] } {
  const ran: string[] = [];
  const work = ["first", "second", "third"].map((name) => () => {
    ran.push(name);
    if (name === "second") throw FAULT;
  });
  return { work, ran };
}

class Entry extends TimeoutEntry {
  readonly #work: () => void;

  constructor(work: () => void) {
    super();
    this.#work = work;
  }

  override onTimeout(): void {
    this.#work();
  }
}

const LOOPS: Readonly<Record<string, (work: (() => void)[]) => void>> = {
  callEach: (work) => callEach(work, (each) => each()),
  "the end of the turn": (work) => {
    for (const each of work) atEndOfTurn({ runAtEndOfTurn: each });
  },
  "a list of time-outs": (work) => {
    const limit = new TimeoutList(5, systemClock);
    for (const each of work) limit.start(new Entry(each));
  },
  "deferred work": (work) => {
    const queue = new DeferredQueue(2);
    for (const each of work) queue.defer(each);
  },
  "listeners of revocations": (work) => {
    const list = new RevocationList();
    for (const each of work) list.onChange(each);
    list.take({ added: [] });
  },
};

test.each(Object.entries(LOOPS))("%s goes on after a member that throws", async (_name, run) => {
  using uncaught = collectUncaught();
  const { work, ran } = three();
  run(work);
  await until(() => ran.length === 3 && uncaught.errors.length > 0);
  expect([ran, uncaught.errors]).toEqual([["first", "second", "third"], [FAULT]]);
});

test("a list of time-outs keeps its timer after a member that throws", async () => {
  using uncaught = collectUncaught();
  const limit = new TimeoutList(20, systemClock);
  const ran: string[] = [];
  limit.start(
    new Entry(() => {
      throw FAULT;
    }),
  );
  const later = new Entry(() => void ran.push("later"));
  setTimeout(() => limit.start(later), 10);
  await until(() => ran.length === 1);
  expect(uncaught.errors).toEqual([FAULT]);
});
