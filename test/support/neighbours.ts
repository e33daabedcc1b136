import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { onTestFinished } from "vitest";

/** What 64 neighbours do with every connection that they can open. They reopen closed ones. */
export interface Neighbourhood {
  readonly port: number;
  readonly connectionsPerAddress: number;
  /** Sent after connecting, as latin1. */
  readonly text: string;
  /** The interval at which it is sent again, in milliseconds. */
  readonly everyMs?: number;
  /** Whether responses are read. */
  readonly reads: boolean;
  /** Whether a connection is closed as soon as the text is sent. */
  readonly leaves?: boolean;
}

const NEIGHBOURS = 64;

/** Returns the loopback address of a neighbour. */
const neighbour = (index: number): string => `127.0.1.${index + 1}`;

/**
 * Starts the neighbours on a separate thread, until the test is over. Resolves when all connections were tried once.
 */
export async function startNeighbours(plan: Neighbourhood): Promise<void> {
  const addresses = Array.from({ length: NEIGHBOURS }, (_none, index) => neighbour(index));
  const thread = new Worker(new URL("neighbours-thread.ts", import.meta.url), {
    workerData: { ...plan, addresses },
  });
  onTestFinished(async () => void (await thread.terminate()));
  await once(thread, "message");
}
