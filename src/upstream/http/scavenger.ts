import { isMainThread } from "node:worker_threads";
import { garbageCollector } from "../../lib/node-internals/node-sockets.ts";

/** Bytes read between two scavenges; fewer in a worker, since each of the others holds as many. */
const EVERY_BYTES = (isMainThread ? 4 : 2) * 1024 * 1024;

let collect: NodeJS.GCFunction | undefined;
let uncollected = 0;

/**
 * Counts bytes of a client's body, or any bytes that a backend sent, and makes V8 scavenge every few megabytes, to free the
 * buffers of large bodies. They are garbage as soon as they are written, but V8 barely counts them and waits until its new
 * space fills up. 200 MB up and down over TLS took 197 MB of resident memory without this and 131 to 138 MB with it, at the
 * same speed. A new space of 1 MiB has the same effect (142 MB), but small requests then take 75 µs of CPU instead of 48.
 */
export function countGarbage(bytes: number): void {
  uncollected += bytes;
  if (uncollected < EVERY_BYTES) return;
  uncollected = 0;
  collect ??= garbageCollector();
  collect({ type: "minor" });
}
