/** Who loses its connections when the budget is used up, and who does not. */
import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { SharedByteCounters, allocateCounters } from "../../src/lib/async/shared-byte-counters.ts";
import { ConnectionLedger } from "../../src/server/listener/connection-ledger.ts";
import { listening } from "../support/listening.ts";
import { until } from "../support/until.ts";

it("leaves alone a client that shares its bucket with the heaviest", async () => {
  const memory = allocateCounters(1);
  const shed: string[] = [];
  const ledger = new ConnectionLedger({
    limit: 100_000,
    shared: { memory, row: 0 },
    shed: (_connections, client) => void shed.push(client),
  });
  const weights = new SharedByteCounters(memory, 0);
  const heavy = "heavy";
  let light = "light";
  while (weights.bucketOf(light) !== weights.bucketOf(heavy)) light += "x";
  const server = createServer();
  const names = [light, heavy, heavy];
  const sockets: Socket[] = [];
  const nameOf = new Map<Socket, string>();
  server.on("connection", (socket: Socket) => {
    nameOf.set(socket, names[sockets.length] ?? "");
    sockets.push(socket);
  });
  ledger.trackServer(server, (socket) => nameOf.get(socket) ?? "");
  const standing = await listening(server);
  onTestFinished(() => standing[Symbol.asyncDispose]());
  for (const [index] of names.entries()) {
    const client = connect(standing.port, "127.0.0.1").on("error", () => undefined);
    onTestFinished(() => void client.destroy());
    await until(() => sockets.length === index + 1);
  }
  const bytesOf = [60_000, 50_000, 50_000];
  for (const [index, socket] of sockets.entries()) {
    ledger.track(socket, { bufferedBytes: bytesOf[index] ?? 0 });
  }
  // All are measured at once, in its next sweep.
  await until(() => shed.length > 0);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, true, true]);
  expect(new Set(shed)).toEqual(new Set([heavy]));
});
