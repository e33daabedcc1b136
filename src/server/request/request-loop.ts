import { INSTANCE_PREFIX, instanceName } from "../../lib/instance-name.ts";

/** Replicas do not know each other's names, so the total number of Sallyports that a request has passed is limited. */
const MOST_PASSED = 10;

const OWN = instanceName();

/**
 * Whether a request has already passed this process, or too many Sallyports.
 *
 * @param passed all `CDN-Loop` fields of the request (RFC 8586), joined by commas.
 */
export function isLoop(passed: string): boolean {
  if (passed.includes(OWN)) return true;
  let count = 0;
  for (let at = passed.indexOf(INSTANCE_PREFIX); at !== -1; count++) {
    at = passed.indexOf(INSTANCE_PREFIX, at + INSTANCE_PREFIX.length);
  }
  return count >= MOST_PASSED;
}
