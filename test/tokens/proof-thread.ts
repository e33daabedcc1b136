import { parentPort, workerData } from "node:worker_threads";
import { type ProofMemory, UsedProofs } from "../../src/tokens/proofs/proof-memory.ts";

/** A thread that remembers the same proofs as others, in the same order. */
export interface ProofThread {
  readonly shared: ProofMemory;
  readonly names: number;
  readonly nowMs: number;
}

const { shared, names, nowMs }: ProofThread = workerData;
const used = new UsedProofs(shared);
const found = Array.from({ length: names }, (_, index) =>
  used.remember(`proof ${index}`, "alice", nowMs + 60_000, nowMs),
);
parentPort?.postMessage(found);
