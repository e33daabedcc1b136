import { once } from "node:events";
import { WebSocket } from "ws";

/** The time limit of one command, in milliseconds. */
const PATIENCE_MS = 20_000;

/**
 * Returns the bytes of live objects and buffers of Sallyport's main thread, after two full garbage collections over Node's
 * inspector. Without them, most of the heap is garbage that V8 has not collected yet: 27 to 59 MiB within half a minute, with
 * 25 MiB of live data at both ends.
 */
export async function liveHeap(inspector: string): Promise<number> {
  const socket = new WebSocket(inspector);
  await once(socket, "open");
  try {
    await command(socket, "HeapProfiler.collectGarbage");
    await command(socket, "HeapProfiler.collectGarbage");
    const usage = await command(socket, "Runtime.getHeapUsage");
    return Number(usage["usedSize"]) + Number(usage["backingStorageSize"] ?? 0);
  } finally {
    socket.terminate();
  }
}

let commands = 0;

/** Sends a command of the Chrome DevTools Protocol, and resolves with its `result`. */
async function command(
  socket: WebSocket,
  method: string,
): Promise<Readonly<Record<string, unknown>>> {
  commands += 1;
  const id = commands;
  const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
  const timer = setTimeout(() => reject(new Error(`${method} was not answered`)), PATIENCE_MS);
  const read = (text: Buffer): void => {
    const message: { readonly id?: number; readonly result?: Record<string, unknown> } = JSON.parse(
      text.toString(),
    );
    if (message.id === id) resolve(message.result ?? {});
  };
  socket.on("message", read);
  socket.send(JSON.stringify({ id, method }));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.off("message", read);
  });
}
