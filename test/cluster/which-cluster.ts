/** Says once why the tests against a cluster are skipped. vitest runs it before the first of them. */
import { whyNoCluster } from "./cluster.ts";

export default function sayWhichCluster(): void {
  const missing = whyNoCluster();
  if (missing !== undefined) console.warn(`The tests against a cluster are skipped: ${missing}.`);
}
