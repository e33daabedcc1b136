import { setTimeout as delay } from "node:timers/promises";
import type { Kind, World } from "./kind.ts";

export interface DriverOptions {
  /** Pieces of traffic that are started per second. */
  readonly rate: number;
  /** Ends it early. */
  readonly stop: AbortSignal;
}

/** How often pieces are started, in milliseconds. */
const TURN_MS = 20;
/** The maximum number of concurrent pieces, so that requests do not accumulate if Sallyport does not answer. */
const MAX_CONCURRENT = 400;

/** What was started. */
export interface Driven {
  readonly begun: number;
  /** Pieces that were not started, since too many were in progress. */
  readonly heldBack: number;
}

/** Starts traffic at the rate for `forMs` milliseconds; resolves when all of it has ended. */
export async function drive(
  world: World,
  kinds: Readonly<Record<string, Kind>>,
  forMs: number,
  { rate, stop }: DriverOptions,
): Promise<Driven> {
  const urn = Object.entries(kinds).flatMap(([name, kind]) =>
    Array.from({ length: kind.weight }, () => ({ name, kind })),
  );
  const underWay = new Set<Promise<unknown>>();
  const startedMs = performance.now();
  let begun = 0;
  let heldBack = 0;
  // Every kind is started once first, so that a short run has all of them.
  const first = world.dice.shuffled(Object.entries(kinds).map(([name, kind]) => ({ name, kind })));
  const begin = (): void => {
    const { name, kind } = first.pop() ?? world.dice.pick(urn);
    const piece = kind.run(world, name).finally(() => underWay.delete(piece));
    underWay.add(piece);
  };
  for (let nowMs = startedMs; nowMs < startedMs + forMs && !stop.aborted;) {
    await delay(TURN_MS);
    nowMs = performance.now();
    const due = Math.floor(((nowMs - startedMs) * rate) / 1000);
    while (begun + heldBack < due) {
      if (underWay.size < MAX_CONCURRENT) {
        begin();
        begun += 1;
      } else {
        heldBack += 1;
      }
    }
  }
  await Promise.all(underWay);
  return { begun, heldBack };
}
