import { randomBytes } from "node:crypto";
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";

const KEY = "sallyport.instance";

/**
 * Returns the name of this process in `CDN-Loop`: `sallyport-` and 12 random hex digits, the same in all of its
 * threads. The main thread must call it first.
 */
export function instanceName(): string {
  const known = getEnvironmentData(KEY);
  if (typeof known === "string") return known;
  const made = `${INSTANCE_PREFIX}${randomBytes(6).toString("hex")}`;
  setEnvironmentData(KEY, made);
  return made;
}

/** The prefix of all instance names. */
export const INSTANCE_PREFIX = "sallyport-";
