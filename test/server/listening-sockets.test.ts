/** How connections are accepted. The sockets are real, so the system decides the order of connections. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { listenOn } from "../../src/server/listener/listening-sockets.ts";
import { countTurns } from "../support/loop-turns.ts";
import { until } from "../support/until.ts";

const CONNECTIONS = 120;

async function start(accepted: (socket: Socket) => void, port = 0, shared = false) {
  const server: Server = createServer((socket) => {
    onTestFinished(() => void socket.destroy());
    accepted(socket);
  });
  const sockets = await listenOn(
    server,
    { host: "127.0.0.1", port, shared, backlog: 511 },
    { highWaterMark: 1_000 },
    () => undefined,
  );
  onTestFinished(() => void sockets.close());
  return sockets;
}

async function open(port: number): Promise<void> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
}

it("accepts several connections per turn of the event loop, but not all that wait", async () => {
  const turns = countTurns();
  const acceptedIn: number[] = [];
  const { port } = await start(() => void acceptedIn.push(turns()));
  await Promise.all(Array.from({ length: CONNECTIONS }, () => open(port)));
  await until(() => acceptedIn.length === CONNECTIONS);
  const inTurns = Map.groupBy(acceptedIn, (each) => each);
  const most = Math.max(...[...inTurns.values()].map(({ length }) => length));
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(16);
});

it("uses its address exclusively, unless it is shared", async () => {
  const { port } = await start(() => undefined);
  await expect(start(() => undefined, port)).rejects.toMatchObject({ code: "EADDRINUSE" });
  const shared = await start(() => undefined, 0, true);
  await expect(start(() => undefined, shared.port, true)).resolves.toMatchObject({
    port: shared.port,
  });
});

it("accepts no more connections once it is closed, and waits for open ones", async () => {
  const open: Socket[] = [];
  const { port, close } = await start((socket) => void open.push(socket));
  const client = connect(port, "127.0.0.1");
  await once(client, "connect");
  await until(() => open.length === 1);
  let closed = false;
  const closing = close().then(() => (closed = true));
  for (let i = 0; i < 20; i += 1) {
    const [error] = await once(connect(port, "127.0.0.1"), "error");
    expect(error).toMatchObject({ code: "ECONNREFUSED" });
  }
  expect(closed).toBe(false);
  open[0]?.destroy();
  await closing;
});
