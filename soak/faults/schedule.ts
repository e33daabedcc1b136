import { setTimeout as delay } from "node:timers/promises";
import { Tally } from "../accounts/tally.ts";
import { Trouble } from "../accounts/trouble.ts";
import type { Fault, FaultContext } from "./fault.ts";

/** The results of the faults. */
export interface FaultRecord {
  readonly ended: Tally;
  /** Faults to which Sallyport did not react as promised. */
  readonly troubles: Trouble;
}

export interface ScheduleOptions extends Omit<FaultContext, "victim" | "holdMs"> {
  readonly faults: Readonly<Record<string, Fault>>;
  /** No fault begins after this many milliseconds, once each has occurred. */
  readonly forMs: number;
  /** The approximate length of faults, and of the pauses between them, in milliseconds. */
  readonly paceMs: number;
  readonly stop: AbortSignal;
}

/** Runs the faults one at a time, in random order. Each occurs once before any occurs again. */
export async function runFaults(options: ScheduleOptions): Promise<FaultRecord> {
  const { faults, forMs, paceMs, stop, world, ...rest } = options;
  const { dice, deployment } = world;
  const record: FaultRecord = { ended: new Tally(), troubles: new Trouble() };
  const untilMs = performance.now() + forMs;
  let rounds = 0;
  const going = (): boolean => !stop.aborted && (rounds === 0 || performance.now() < untilMs);
  for (; going(); rounds += 1) {
    for (const [name, fault] of dice.shuffled(Object.entries(faults))) {
      await delay(paceMs * (0.5 + dice.fraction()), undefined, { signal: stop }).catch(() => {});
      if (!going()) break;
      const victim = dice.pick(deployment.backends);
      const holdMs = paceMs * (0.5 + dice.fraction());
      try {
        await fault({ ...rest, world, victim, holdMs });
        record.ended.add(name);
      } catch (error) {
        record.troubles.add(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
  return record;
}
