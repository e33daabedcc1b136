import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { onTestFinished } from "vitest";

/** What 64 neighbours do with every connection that they can open, and open again when it is closed. */
export interface Neighbourhood {
  readonly port: number;
  readonly connectionsPerAddress: number;
  /** Sent when connected, as latin1. */
  readonly text: string;
  /** Sent again so often, in milliseconds. */
  readonly everyMs?: number;
  /** Whether answers are read. */
  readonly reads: boolean;
  /** Whether a connection is closed as soon as the text is sent. */
  readonly leaves?: boolean;
}

const NEIGHBOURS = 64;

/** The loopback address of one of them. */
const neighbour = (index: number): string => `127.0.1.${index + 1}`;

/** Has them at it, on a thread of their own, until the test is over. Resolves when all have been tried once. */
export async function startNeighbours(plan: Neighbourhood): Promise<void> {
  const addresses = Array.from({ length: NEIGHBOURS }, (_none, index) => neighbour(index));
  const thread = new Worker(new URL("neighbours-thread.ts", import.meta.url), {
    workerData: { ...plan, addresses },
  });
  onTestFinished(async () => void (await thread.terminate()));
  await once(thread, "message");
}
