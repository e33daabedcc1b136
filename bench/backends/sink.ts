import { startChild } from "../machine/children.ts";
import type { Running } from "../peers/peer.ts";
import { running } from "../peers/running.ts";

/** Starts the backend that takes large bodies and WebSockets, in a thread of execution of its own. */
export async function startSink(): Promise<Running> {
  const child = startChild(process.execPath, [`${import.meta.dirname}/sink-server.ts`]);
  const listening = child.read((output) => {
    const found = /^listening (\d+)$/m.exec(output);
    return found === null ? undefined : { port: Number(found[1]) };
  });
  return running(child, listening);
}
