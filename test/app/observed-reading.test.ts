/** Metrics and log entries about clients that are held back. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { createObservedReading } from "../../src/app/client-warnings.ts";
import { NOOP_LOG } from "../../src/app/explanation/dry-run-gate.ts";
import { listening } from "../support/listening.ts";
import { until } from "../support/until.ts";

const MESSAGE = "a client is held back, since it takes too much of the event loop's time";

async function acceptedSocket(): Promise<Socket> {
  const server = createServer();
  const { port } = await listening(server);
  const accepted = once(server, "connection");
  const client = connect(port, "127.0.0.1");
  const [socket]: Socket[] = await accepted;
  if (socket === undefined) throw new Error("no socket");
  onTestFinished(() => {
    client.destroy();
    socket.destroy();
    server.close();
  });
  return socket;
}

it("counts every connection that is held back, and names a client at most once a minute", async () => {
  let time = 0;
  const counted: string[] = [];
  const lines: unknown[] = [];
  const reading = createObservedReading({
    clock: { now: () => 0, monotonic: () => time },
    observer: { connectionsPostponed: (what, count) => void counted.push(`${what} ${count}`) },
    log: { ...NOOP_LOG, warn: (message, fields) => void lines.push([message, fields]) },
  });
  const socket = await acceptedSocket();
  reading.accept(socket, "192.0.2.7");
  const flood = async (): Promise<void> => {
    for (let i = 0; i < 40; i += 1) {
      time += 5;
      reading.charge(socket);
    }
    await until(() => reading.waiting === 0);
  };
  await flood();
  expect(counted).toEqual(["read 1"]);
  expect(lines).toEqual([[MESSAGE, { client: "192.0.2.7" }]]);
  await flood();
  expect(counted).toEqual(["read 1", "read 1"]);
  expect(lines).toHaveLength(1);
  time += 60_000;
  await flood();
  expect(lines).toHaveLength(2);
});
