/** Preloaded into a measured Sallyport: sends each client the number of bytes that V8 has allocated since the start. */
import { createServer } from "node:net";
import { getHeapStatistics } from "node:v8";
import { isMainThread } from "node:worker_threads";
import { HEAP_SOCKET } from "./heap-socket.ts";

const path = process.env[HEAP_SOCKET];
// With one worker, the main thread serves the requests.
if (path !== undefined && isMainThread) {
  createServer((socket) => socket.end(String(getHeapStatistics().total_allocated_bytes)))
    .listen(path)
    .unref();
}
