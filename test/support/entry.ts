import { fileURLToPath } from "node:url";

/** The environment variable by which `made-once.ts` names the build of this run. */
export const BUILT = "VITEST_BUILT_ENTRY";

/**
 * The environment variable by which `made-once.ts` names where Node finds compiled code. Only the processes that tests start
 * may use it: those of vitest would write there when the run is over.
 */
export const COMPILED = "VITEST_COMPILED";

/** What `entry()` is started with in its environment, so that it starts sooner. */
export function compiled(): Record<string, string> {
  const directory = process.env[COMPILED];
  return directory === undefined ? {} : { NODE_COMPILE_CACHE: directory };
}

/**
 * The file that tests start as Sallyport: the one that SALLYPORT_ENTRY names, or the build of this run, which starts in a
 * third of the time, or else the sources.
 */
export function entry(): string {
  return process.env["SALLYPORT_ENTRY"] ?? process.env[BUILT] ?? SOURCES;
}

/** Where what is tested is that the sources themselves run. */
export const SOURCES = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
