import { setTimeout as delay } from "node:timers/promises";
import { Tally } from "../accounts/tally.ts";
import { Trouble } from "../accounts/trouble.ts";
import type { Fault, FaultContext } from "./fault.ts";

/** How the faults went. */
export interface FaultRecord {
  readonly ended: Tally;
  /** Faults in which something did not come that Sallyport promises. */
  readonly troubles: Trouble;
}

export interface ScheduleOptions extends Omit<FaultContext, "victim" | "holdMs"> {
  readonly faults: Readonly<Record<string, Fault>>;
  /** No fault begins after so many milliseconds, once each has had its turn. */
  readonly forMs: number;
  /** About how long a fault lasts, and how long it is quiet between two, in milliseconds. */
  readonly paceMs: number;
  readonly stop: AbortSignal;
}

/** One fault after the other, never two at once, in an order that the dice give; each has its turn before one comes again. */
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
