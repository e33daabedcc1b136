import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Peer } from "./raw-client.ts";

export interface FloodOptions {
  /** The loopback address that it comes from. */
  readonly from: string;
  readonly connections: number;
  /** Milliseconds. Connections that are closed earlier are opened again. */
  readonly forMs: number;
  /** The number of responses to wait for before sending again. Undefined: sends as fast as the peer reads. */
  readonly answers?: number | undefined;
}

export interface FloodPlan extends Peer, FloodOptions {
  /** Sent repeatedly on each connection, as latin1. */
  readonly text: string;
}

/**
 * Sends the same text repeatedly, from a separate thread, so that a test can measure meanwhile without waiting for
 * itself.
 *
 * @returns the status codes received, once the last connection is closed.
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
