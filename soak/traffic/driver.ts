import { setTimeout as delay } from "node:timers/promises";
import type { Kind, World } from "./kind.ts";

export interface DriverOptions {
  /** Pieces of traffic that are begun each second. */
  readonly rate: number;
  /** Ends it early. */
  readonly stop: AbortSignal;
}

/** How often pieces are begun, in milliseconds. */
const TURN_MS = 20;
/** More are not under way at once: a product that does not answer must not be asked without end. */
const MOST_UNDER_WAY = 400;

/** What was begun. */
export interface Driven {
  readonly begun: number;
  /** Pieces that were not begun, since too many were under way. */
  readonly heldBack: number;
}

/** Begins traffic at the rate for so many milliseconds; resolves when all of it has ended. */
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
  // Every kind once first, so that a short run has them all.
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
      if (underWay.size < MOST_UNDER_WAY) {
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
