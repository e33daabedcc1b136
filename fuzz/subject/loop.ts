import type { ChildProcess } from "node:child_process";
import type { Lap } from "./loop-watch.ts";

/** The module to preload into a process whose event loop is watched. */
export const LOOP_WATCH = new URL("loop-watch.ts", import.meta.url).href;

/** The event loop of a subject. */
export interface Loop {
  /**
   * Returns its activity since the last call.
   * @returns undefined if it does not turn within `limitMs`, or the process has ended.
   */
  lap(limitMs: number): Promise<Lap | undefined>;
}

/** Returns the event loop of a child. @param child was started with LOOP_WATCH and an IPC channel. */
export function loopOf(child: ChildProcess): Loop {
  let pending: ((lap: Lap | undefined) => void)[] = [];
  child.on("message", (lap: Lap) => pending.shift()?.(lap));
  child.once("close", () => {
    for (const resolve of pending) resolve(undefined);
    pending = [];
  });
  return {
    lap(limitMs) {
      if (!child.connected) return Promise.resolve(undefined);
      const { promise, resolve } = Promise.withResolvers<Lap | undefined>();
      const timer = setTimeout(() => resolve(undefined), limitMs);
      pending.push((lap) => {
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
