import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Peer } from "./raw-client.ts";

export interface FloodOptions {
  /** The address of this machine's loopback that it comes from. */
  readonly from: string;
  readonly connections: number;
  /** Milliseconds; connections that are closed before are opened again. */
  readonly forMs: number;
  /** So many answers are waited for before the same is sent again; as fast as it is taken when undefined. */
  readonly answers?: number | undefined;
}

export interface FloodPlan extends Peer, FloodOptions {
  /** What each connection sends again and again, as latin1. */
  readonly text: string;
}

/**
 * Sends the same again and again, from a thread of its own, so that whoever measures meanwhile does not wait for himself.
 *
 * @returns the status codes that came back, when the last connection is closed.
 */
export async function flood(
  { port, ca }: Peer,
  text: string,
  options: FloodOptions,
): Promise<Set<number>> {
  const plan: FloodPlan = { port, ca, text, ...options };
  const thread = new Worker(new URL("flood-thread.ts", import.meta.url), { workerData: plan });
  const [statuses]: number[][] = await once(thread, "message");
  await thread.terminate();
  return new Set(statuses);
}
