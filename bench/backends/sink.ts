import { startChild } from "../machine/children.ts";
import type { Running } from "../peers/peer.ts";
import { running } from "../peers/running.ts";

/** Starts the backend for large bodies and WebSockets, in a separate process. */
export function startSink(): Promise<Running> {
  return startServer("sink-server.ts");
}

/** Starts the gRPC backend. @param holds whether it begins to answer calls, but ends none before its client does. */
export function startGrpc({ holds }: { readonly holds: boolean }): Promise<Running> {
  return startServer("grpc-server.ts", ...(holds ? ["hold"] : []));
}

async function startServer(script: string, ...args: string[]): Promise<Running> {
  const child = startChild(process.execPath, [`${import.meta.dirname}/${script}`, ...args]);
  const listening = child.read((output) => {
    const found = /^listening (\d+)$/m.exec(output);
    return found === null ? undefined : { port: Number(found[1]) };
  });
  return running(child, listening);
}
