/** Many handshakes take longer than a turn of the event loop should. The test sets the time; the sockets are real. */
import { once } from "node:events";
import { createServer as createTcpServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect, createServer, type TLSSocket } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import {
  startReading,
  stopReading,
  transportOf,
} from "../../src/lib/node-internals/node-sockets.ts";
import { FairReading } from "../../src/server/listener/reading/fair-reading.ts";
import { testCertificates } from "../support/certificates.ts";
import { listening } from "../support/listening.ts";
import { countTurns } from "../support/loop-turns.ts";
import { until } from "../support/until.ts";

const HANDSHAKE_MS = 5;
const CROWD = 96;
/** The time until everything in transit has arrived. */
const SETTLING_MS = 200;

it("ends a turn of handshakes that takes too long, and continues in the next turns", async () => {
  let time = 0;
  const turns = countTurns();
  const { ca, server: own } = await testCertificates();
  const reading = new FairReading({ now: () => 0, monotonic: () => time }, () => undefined);
  const inTurns: number[] = [];
  let begun = 0;
  const secure = createServer({ cert: own.cert, key: own.key }, (socket: TLSSocket) => {
    time += HANDSHAKE_MS;
    inTurns.push(turns());
    reading.track(socket, transportOf(socket) as Socket);
    socket.on("error", () => undefined).on("data", () => void socket.end("x"));
  });
  const server = createTcpServer((socket: Socket) => {
    const begin = (): void => {
      begun += 1;
      secure.emit("connection", socket);
    };
    if (reading.accept(socket, String(socket.remotePort))) begin();
    else reading.postpone(socket, begin);
  });
  await using front = await listening(server);
  const clients = Array.from({ length: CROWD }, () => connect({ port: front.port, ca }));
  onTestFinished(() => clients.forEach((client) => void client.destroy()));
  const answers = clients.map(answerTo);
  // All have sent their first flight, and none has read the response. Node starts reading after "connect".
  for (const client of clients) {
    client.once("connect", () => void setImmediate(() => stopReading(client)));
  }
  await until(() => begun === CROWD && clients.every(({ connecting }) => !connecting));
  await delay(SETTLING_MS);
  expect(inTurns).toEqual([]);
  time += 10_000;
  for (const client of clients) startReading(client);
  expect(await Promise.all(answers)).toEqual(Array.from({ length: CROWD }, () => "x"));
  const counts = Map.groupBy(inTurns, (turn) => turn).values();
  expect(Math.max(...[...counts].map(({ length }) => length))).toBeLessThan(CROWD / 2);
});

async function answerTo(client: TLSSocket): Promise<string> {
  client.on("error", () => undefined);
  await once(client, "secureConnect");
  client.write("a");
  const [answer] = await once(client, "data");
  return String(answer);
}
