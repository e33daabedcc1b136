/**
 * Loaded before Sallyport by `NODE_OPTIONS=--import` of a test's child process: what a fault inside a thread looks like from
 * outside. The thread that gets a request with the field `x-misbehave` stands still, or ends. A thread of the name that the
 * environment variable STANDING_THREAD has stands still from its start.
 */
import { subscribe } from "node:diagnostics_channel";
import { openSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import workerThreads, { type WorkerOptions } from "node:worker_threads";

function misbehave(how: string): void {
  // To standard error itself, which misbehaving.ts reads: that of a thread goes through the main thread.
  if (how !== "") writeSync(2, `misbehaves: ${how}\n`);
  // Where a thread can be ended from outside, as in a loop or a regular expression, but without their processor time.
  if (how === "hang") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  // Where it cannot: in a system call that nobody answers. The rest is the path of a named pipe that nobody writes.
  else if (how.startsWith("open ")) openSync(how.slice("open ".length), "r");
  // A file on storage that does not answer.
  else if (how.startsWith("read ")) void open(how.slice("read ".length), "r");
  // As when its memory is used up: without a word.
  else if (how === "end") process.exit(1);
}

subscribe("http.server.request.start", (message) => {
  const { request } = message as { request: { headers: Record<string, string | undefined> } };
  misbehave(request.headers["x-misbehave"] ?? "");
});

/** What such a thread runs instead of its file: most of them have nothing preloaded that could be told to. */
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
