import { rmSync } from "node:fs";
import { type RawBackend, startRawBackend } from "./raw-backend.ts";
import { type Sallyport, startSallyport } from "./sallyport.ts";

export interface Standing {
  readonly gate: Sallyport;
  readonly backend: RawBackend;
}

let standing: Standing | undefined;

/**
 * Returns a Sallyport with the default configuration in front of a raw backend. All test files of this process share
 * it, because a start takes longer than most tests; it ends with the process. A test that ended it, or wrote a secret to
 * its log, costs only itself: the next one gets another.
 *
 * @returns both, with a log that begins here.
 */
export async function processSallyport(): Promise<Standing> {
  if (standing === undefined || standing.gate.exited()) standing = await start();
  const { gate, backend } = standing;
  backend.forget();
  const begin = gate.log().length;
  return { backend, gate: { ...gate, log: () => gate.log().slice(begin) } };
}

/** Throws if a secret is in what it has logged, and ends it. */
export async function checkProcessSallyport(): Promise<void> {
  const { gate } = standing ?? {};
  if (gate?.leaks().length === 0) return;
  standing = undefined;
  await gate?.close();
}

async function start(): Promise<Standing> {
  const backend = await startRawBackend();
  const gate = await startSallyport({ target: backend.url });
  // vitest ends its processes with SIGTERM.
  process.once("SIGTERM", () => process.exit());
  process.once("exit", () => rmSync(gate.directory, { recursive: true, force: true }));
  return { gate, backend };
}
