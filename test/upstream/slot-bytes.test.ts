/** How much a connection to a backend counts against the budget. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { UNMETERED } from "../../src/server/listener/reading/fair-reading.ts";
import { Transfer } from "../../src/core/request/transfer.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Slot } from "../../src/upstream/pool/slot.ts";
import { Upstream } from "../../src/upstream/pool/upstreams.ts";
import { listening } from "../support/listening.ts";
import { permitFor } from "../support/permit.ts";
import { UPSTREAM_DEFAULTS } from "../support/upstream-defaults.ts";

const MIB = 1024 * 1024;

/** Opens a connection to a backend that reads nothing. */
async function deafBackend(): Promise<Socket> {
  const server = createServer((socket) => socket.on("error", () => undefined).pause());
  const { port } = await listening(server);
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => {
    socket.destroy();
    server.close();
  });
  await once(socket, "connect");
  return socket;
}

it("counts all data written to a backend that does not read, while the request has its slot", async () => {
  const upstream = new Upstream(
    {
      ...UPSTREAM_DEFAULTS,
      name: "app",
      targets: ["http://127.0.0.1:9"],
      connections: 1,
      queue: { length: 1, timeout: 1 },
      timeouts: { connect: 1, response: 1, idle: 1 },
      websocket: { handshake: 1, idle: 1 },
    },
    systemClock,
  );
  onTestFinished(() => upstream.close());
  const permit = permitFor({}, { upstream: "app" });
  const slot = new Slot({
    upstream,
    permit,
    transfer: new Transfer(),
    settings: { clock: systemClock, reading: UNMETERED },
    response: { headersSent: false, destroy: () => undefined },
  });
  slot.take();
  const socket = await deafBackend();
  slot.connection = { socket, writableNeedDrain: true };
  socket.write(Buffer.alloc(16 * MIB));
  expect(socket.writableLength).toBeGreaterThan(MIB);
  expect(slot.bufferedBytes).toBeGreaterThanOrEqual(socket.writableLength);
  slot.release();
  expect(slot.bufferedBytes).toBe(0);
});
