/** The thread of a flood; see flood.ts. */
import { connect as connectTcp, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { parentPort, workerData } from "node:worker_threads";
import type { FloodPlan } from "./flood.ts";

const { port, ca, from, connections, forMs, text, answers }: FloodPlan = workerData;
const bytes = Buffer.from(text, "latin1");
/** Counted from the first connection, which may take long on a busy machine. */
let end = Infinity;
/** A connection that the peer still holds open this long after the flood is closed. */
const PATIENCE_MS = 12_000;
/** The wait before a connection is opened again, since a flood of handshakes is another attack. */
const PAUSE_MS = 25;
const statuses = new Set<number>();

await Promise.all(Array.from({ length: connections }, keepConnecting));
parentPort?.postMessage([...statuses]);

async function keepConnecting(): Promise<void> {
  while (performance.now() < end) {
    await floodOne();
    end = Math.min(end, performance.now() + forMs);
    await delay(PAUSE_MS);
  }
}

/** Floods one connection. Resolves when it is closed. */
async function floodOne(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const where = { host: "127.0.0.1", port, localAddress: from };
  const socket: Socket =
    ca === undefined
      ? connectTcp(where, more)
      : connectTls({ ...where, ca, servername: "localhost" }, more);
  let awaited = 0;
  let unread = "";
  socket.on("error", () => socket.destroy());
  socket.on("close", () => resolve());
  socket.on("drain", () => {
    if (answers === undefined) more();
  });
  socket.on("data", (chunk: Buffer) => {
    unread += chunk.toString("latin1");
    for (const [, status] of unread.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
      statuses.add(Number(status));
      awaited -= 1;
    }
    // As much as may be the start of another status line.
    unread = unread.slice(-12);
    if (answers !== undefined && awaited <= 0) more();
  });
  const timer = setTimeout(() => socket.destroy(), forMs + PATIENCE_MS);
  await promise;
  clearTimeout(timer);

  function more(): void {
    end = Math.min(end, performance.now() + forMs);
    if (performance.now() > end) {
      socket.end();
    } else if (!socket.destroyed) {
      awaited += answers ?? 0;
      if (socket.write(bytes) && answers === undefined) setImmediate(more);
    }
  }
}
