import { fileURLToPath } from "node:url";

/** The environment variable in which `made-once.ts` passes the build of this run. */
export const BUILT = "VITEST_BUILT_ENTRY";

/**
 * The environment variable in which `made-once.ts` passes Node's compile cache. Only processes that tests start may use
 * it: vitest's own would write to it after the run is over.
 */
export const COMPILED = "VITEST_COMPILED";

/** Returns the environment in which `entry()` starts faster. */
export function compiled(): Record<string, string> {
  const directory = process.env[COMPILED];
  return directory === undefined ? {} : { NODE_COMPILE_CACHE: directory };
}

/**
 * Returns the file that tests start as Sallyport: SALLYPORT_ENTRY, else the build of this run, which starts in a third
 * of the time, else the sources.
 */
export function entry(): string {
  return process.env["SALLYPORT_ENTRY"] ?? process.env[BUILT] ?? SOURCES;
}

/** For tests that the sources themselves run. */
export const SOURCES = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
