import { once } from "node:events";
import { createServer } from "node:net";

/** @returns an address on 127.0.0.1 with this port, or with any free port if another program listens there. */
export async function freeAddress(port: number): Promise<string> {
  const probe = createServer().listen(port, "127.0.0.1");
  try {
    await once(probe, "listening");
    return `127.0.0.1:${port}`;
  } catch {
    return "127.0.0.1:0";
  } finally {
    probe.close();
  }
}
