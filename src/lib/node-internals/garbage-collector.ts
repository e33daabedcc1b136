import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Returns the function that collects garbage, which V8 gives only to contexts created with this flag. */
export function garbageCollector(): NodeJS.GCFunction {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}
