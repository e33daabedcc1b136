import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Peer } from "../../test/support/raw-client.ts";

/** What the innocent neighbours saw. */
export interface Witness {
  readonly asked: number;
  /** Requests without the right answer, each with what it got instead. */
  readonly lost: readonly string[];
}

/** Honest clients and honest backends, on a thread of their own: what the attackers do takes none of their time. */
export interface Neighbours extends AsyncDisposable {
  readonly targets: Readonly<Record<`innocent-${"http1" | "h2c"}`, string>>;
  /** Starts to ask at a steady, low rate. */
  start(peer: Peer): void;
  /** Stops, and waits for the answers that are due. */
  stop(): Promise<Witness>;
}

export type FromThread =
  | { readonly http1: string; readonly h2c: string }
  | { readonly witness: Witness };

export async function startNeighbours(): Promise<Neighbours> {
  const thread = new Worker(new URL("neighbours-thread.ts", import.meta.url));
  const [began]: FromThread[] = await once(thread, "message");
  if (began === undefined || !("http1" in began)) throw new Error("the neighbours did not start");
  return {
    targets: { "innocent-http1": began.http1, "innocent-h2c": began.h2c },
    start: (peer) => thread.postMessage({ port: peer.port, ca: peer.ca }),
    async stop() {
      thread.postMessage("stop");
      const [said]: FromThread[] = await once(thread, "message");
      if (said === undefined || !("witness" in said))
        throw new Error("the neighbours said nothing");
      return said.witness;
    },
    async [Symbol.asyncDispose]() {
      await thread.terminate();
    },
  };
}
