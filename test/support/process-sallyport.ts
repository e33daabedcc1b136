import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { ask } from "./ask.ts";
import { logLine } from "./log-line.ts";
import { type RawBackend, type RawScript, startRawBackend } from "./raw-backend.ts";
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
 * @param script only for a backend that keeps its connections usable: others would get them.
 * @returns both, with a log that begins here.
 */
export async function processSallyport(script?: RawScript): Promise<Standing> {
  if (standing === undefined || standing.gate.exited()) standing = await start();
  const { gate, backend } = standing;
  backend.answerWith(undefined);
  // The log is in order: whatever follows the line of this request is not about an earlier file.
  const path = `/public/${randomUUID()}`;
  await ask(gate, path);
  await logLine(gate, { path });
  const begin = gate.log().length;
  backend.forget();
  backend.answerWith(script);
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
