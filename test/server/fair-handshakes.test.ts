/** Handshakes of a crowd take more than a turn of the event loop should last. Time is what the test says; sockets are real. */
import { once } from "node:events";
import { createServer as createTcpServer, type Socket } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { FairReading } from "../../src/server/listener/reading/fair-reading.ts";
import { testCertificates } from "../support/certificates.ts";
import { listening } from "../support/listening.ts";
import { countTurns } from "../support/loop-turns.ts";
import { until } from "../support/until.ts";

const HANDSHAKE_MS = 5;
const CROWD = 96;

it("ends a turn of handshakes that lasts too long, and goes on with them in the next ones", async () => {
  let time = 0;
  const turns = countTurns();
  const { ca, server: own } = await testCertificates();
  const reading = new FairReading({ now: () => 0, monotonic: () => time }, () => undefined);
  const inTurns: number[] = [];
  const secure = createServer({ cert: own.cert, key: own.key }, (socket: TLSSocket) => {
    time += HANDSHAKE_MS;
    inTurns.push(turns());
    const name = String(socket.remotePort);
    reading.track(socket, name);
    socket.on("error", () => undefined).on("data", () => void socket.end("x"));
  });
  const server = createTcpServer((socket: Socket) => {
    const begin = (): void => void secure.emit("connection", socket);
    reading.accept(socket, String(socket.remotePort), begin);
  });
  await using front = await listening(server);
  const clients = Array.from({ length: CROWD }, () => connect({ port: front.port, ca }));
  onTestFinished(() => clients.forEach((client) => void client.destroy()));
  const ended = clients.map(async (client) => {
    client.on("error", () => undefined);
    await once(client, "secureConnect");
    client.write("a");
    const [answer] = await once(client, "data");
    return String(answer);
  });
  expect(await Promise.all(ended)).toEqual(Array.from({ length: CROWD }, () => "x"));
  await until(() => reading.waiting === 0);
  const counts = Map.groupBy(inTurns, (turn) => turn).values();
  expect(Math.max(...[...counts].map(({ length }) => length))).toBeLessThan(16);
});
