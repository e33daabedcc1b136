import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import type { Peer } from "./raw-client.ts";

/** Returns how many bytes from this client the peer has not read from its socket yet (`rx_queue`, proc(5)). */
export async function unreadBy(
  { port }: Pick<Peer, "port">,
  { localPort = 0 }: Socket,
): Promise<number> {
  const hex = (number: number): string => number.toString(16).toUpperCase().padStart(4, "0");
  const table = await readFile("/proc/net/tcp", "utf8");
  const row = table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .find(
      ([, own, other]) => own?.endsWith(`:${hex(port)}`) && other?.endsWith(`:${hex(localPort)}`),
    );
  return parseInt(row?.[4]?.split(":")[1] ?? "0", 16);
}
