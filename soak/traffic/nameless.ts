import { exchange, openSocket } from "../../test/support/raw-client.ts";
import type { World } from "./kind.ts";

/** Sends bytes that never become a request with an id: Node's parser refuses them before Sallyport reads a header. */

async function refused({ client, ledger }: World, bytes: string, status: number): Promise<void> {
  const { last } = await exchange(client.place, bytes, { timeoutMs: 20_000 }).catch(() => ({
    last: { status: 0 },
  }));
  ledger.namelessAnswers.add(String(last.status));
  if (last.status !== status) ledger.lost.add(`nameless bytes got ${last.status}, not ${status}`);
}

export function noHttp(world: World): Promise<void> {
  const bytes = world.dice.pick([
    "nonsense\r\n\r\n",
    "GET /\x00 HTTP/1.1\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
  ]);
  return refused(world, bytes, 400);
}

export function hugeHead(world: World): Promise<void> {
  return refused(world, `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431);
}

/** Leaves within the head. */
export async function unfinishedHead({ client, ledger, dice }: World): Promise<void> {
  ledger.unfinishedHeads += 1;
  const socket = await openSocket(client.place).catch(() => undefined);
  socket?.write("GET / HTTP/1.1\r\nHost: loc", () => {
    if (dice.fraction() < 0.5) socket.destroy();
    else socket.end(() => socket.destroy());
  });
}
