import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** The heap in use when all garbage is gone, in bytes. */
export function heapInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
  return process.memoryUsage().heapUsed;
}
