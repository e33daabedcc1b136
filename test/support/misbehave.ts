/**
 * Loaded before Sallyport with `NODE_OPTIONS=--import` in a child process of a test: simulates faults inside a thread.
 * The thread that receives a request with the field `x-misbehave` hangs or exits. The thread named in the environment
 * variable STANDING_THREAD hangs from its start.
 */
import { subscribe } from "node:diagnostics_channel";
import { openSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import workerThreads, { type WorkerOptions } from "node:worker_threads";

function misbehave(how: string): void {
  // Directly to the file descriptor, which misbehaving.ts reads: a thread's own stderr goes through the main thread.
  if (how !== "") writeSync(2, `misbehaves: ${how}\n`);
  // In a place where a thread can be terminated, as in a loop or a regular expression, but without using CPU time.
  if (how === "hang") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  // In a place where it cannot: a system call that never returns. The rest is the path of a named pipe without a writer.
  else if (how.startsWith("open ")) openSync(how.slice("open ".length), "r");
  // A file on storage that does not respond.
  else if (how.startsWith("read ")) void open(how.slice("read ".length), "r");
  // The way it ends when its memory is exhausted: without a message.
  else if (how === "end") process.exit(1);
}

subscribe("http.server.request.start", (message) => {
  const { request } = message as { request: { headers: Record<string, string | undefined> } };
  misbehave(request.headers["x-misbehave"] ?? "");
});

/** What such a thread runs instead of its file, since most threads load no preloaded module. */
const STILL = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)";

const still = process.env["STANDING_THREAD"];
if (still !== undefined) {
  const { Worker } = workerThreads;
  workerThreads.Worker = class extends Worker {
    constructor(file: string | URL, options: WorkerOptions = {}) {
      const stands = options.name === still;
      super(stands ? STILL : file, stands ? { ...options, eval: true } : options);
    }
  };
  syncBuiltinESMExports();
}
