import { fileURLToPath } from "node:url";
import { ask } from "./ask.ts";
import type { Peer } from "./raw-client.ts";
import type { Sallyport } from "./sallyport.ts";
import { until } from "./until.ts";

/** Environment for `startSallyport` in which its threads misbehave on request. See misbehave.ts. */
export const MISBEHAVING = {
  NODE_OPTIONS: `--import ${fileURLToPath(new URL("./misbehave.ts", import.meta.url))}`,
};

/**
 * Makes an arbitrary thread hang (`hang`, `open PIPE`), occupy the thread pool (`read PIPE`) or exit (`end`). Resolves
 * when a thread has the request, or when the request fails; it is never answered.
 */
export function misbehave(gate: Sallyport, how: string): Promise<void> {
  return sendTo(gate, gate, how);
}

/** Makes the main thread misbehave. */
export function misbehaveInMain(gate: Sallyport, how: string): Promise<void> {
  return sendTo(gate, { port: gate.adminPort }, how);
}

/** Returns how many threads have been made to misbehave so far. */
export function misbehaving(gate: Sallyport): number {
  return gate.stderr().match(/^misbehaves: /gm)?.length ?? 0;
}

async function sendTo(gate: Sallyport, peer: Peer, how: string): Promise<void> {
  const before = misbehaving(gate);
  const headers = { "x-misbehave": how };
  const lost = ask(peer, "/public/x", { headers }).catch(() => undefined);
  await Promise.race([lost, until(() => misbehaving(gate) > before, 30_000)]);
}
