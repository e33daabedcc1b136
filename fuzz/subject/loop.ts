import type { ChildProcess } from "node:child_process";
import type { Lap } from "./loop-watch.ts";

/** What is loaded into a process whose event loop is to be watched. */
export const LOOP_WATCH = new URL("loop-watch.ts", import.meta.url).href;

/** The event loop of a subject. */
export interface Loop {
  /**
   * What it did since the last call.
   * @returns undefined when it did not turn within `limitMs`, or the process has ended.
   */
  lap(limitMs: number): Promise<Lap | undefined>;
}

/** @param child was started with LOOP_WATCH and a channel. */
export function loopOf(child: ChildProcess): Loop {
  let asked: ((lap: Lap | undefined) => void)[] = [];
  child.on("message", (lap: Lap) => asked.shift()?.(lap));
  child.once("close", () => {
    for (const resolve of asked) resolve(undefined);
    asked = [];
  });
  return {
    lap(limitMs) {
      if (!child.connected) return Promise.resolve(undefined);
      const { promise, resolve } = Promise.withResolvers<Lap | undefined>();
      const timer = setTimeout(() => resolve(undefined), limitMs);
      asked.push((lap) => {
        clearTimeout(timer);
        resolve(lap);
      });
      child.send("lap", (error) => {
        if (error !== null) resolve(undefined);
      });
      return promise;
    },
  };
}
