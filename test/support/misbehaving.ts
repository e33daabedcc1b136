import { fileURLToPath } from "node:url";
import { ask } from "./ask.ts";
import type { Peer } from "./raw-client.ts";
import type { Sallyport } from "./sallyport.ts";
import { until } from "./until.ts";

/** For `startSallyport`: its threads misbehave when they are told to. See misbehave.ts. */
export const MISBEHAVING = {
  NODE_OPTIONS: `--import ${fileURLToPath(new URL("./misbehave.ts", import.meta.url))}`,
};

/**
 * Has the thread that the system chooses stand still (`hang`, `open PIPE`), occupy the thread pool (`read PIPE`) or end (`end`).
 * Resolves when a thread has the request, or when it is lost; nobody answers it.
 */
export function misbehave(gate: Sallyport, how: string): Promise<void> {
  return tell(gate, gate, how);
}

/** The same for the main thread. */
export function misbehaveInMain(gate: Sallyport, how: string): Promise<void> {
  return tell(gate, { port: gate.adminPort }, how);
}

/** How many threads have been told so far. */
export function misbehaving(gate: Sallyport): number {
  return gate.stderr().match(/^misbehaves: /gm)?.length ?? 0;
}

async function tell(gate: Sallyport, peer: Peer, how: string): Promise<void> {
  const before = misbehaving(gate);
  const headers = { "x-misbehave": how };
  const lost = ask(peer, "/public/x", { headers }).catch(() => undefined);
  await Promise.race([lost, until(() => misbehaving(gate) > before, 30_000)]);
}
