import { onTestFinished } from "vitest";

/** Counts the turns of the event loop until the test is over. @returns the count so far. */
export function countTurns(): () => number {
  let turns = 0;
  let next = setImmediate(onTurn);
  function onTurn(): void {
    turns += 1;
    next = setImmediate(onTurn);
  }
  onTestFinished(() => clearImmediate(next));
  return () => turns;
}
