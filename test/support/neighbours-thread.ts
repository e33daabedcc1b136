/** The thread of the neighbours; see neighbours.ts. */
import { connect, type Socket } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import type { Neighbourhood } from "./neighbours.ts";

const plan: Neighbourhood & { readonly addresses: readonly string[] } = workerData;
const bytes = Buffer.from(plan.text, "latin1");
/** The wait before a connection is opened again, so that this thread does not occupy the entire machine. */
const PAUSE_MS = 100;
/** Sockets of the first round that have neither connected nor failed. */
const untried = new Set<Socket>();

for (const address of plan.addresses) {
  for (let index = 0; index < plan.connectionsPerAddress; index += 1) {
    untried.add(keepConnecting(address));
  }
}

function tried(socket: Socket): void {
  if (untried.delete(socket) && untried.size === 0) parentPort?.postMessage("begun");
}

function keepConnecting(localAddress: string): Socket {
  const socket = connect({ host: "127.0.0.1", port: plan.port, localAddress });
  let timer: NodeJS.Timeout | undefined;
  socket.on("connect", () => {
    tried(socket);
    if (bytes.length > 0) socket.write(bytes);
    if (plan.reads) socket.resume();
    if (plan.leaves === true) socket.end().destroySoon();
    if (plan.everyMs !== undefined) timer = setInterval(() => socket.write(bytes), plan.everyMs);
  });
  socket.on("error", () => socket.destroy());
  socket.on("close", () => {
    tried(socket);
    clearInterval(timer);
    setTimeout(keepConnecting, PAUSE_MS, localAddress);
  });
  return socket;
}
