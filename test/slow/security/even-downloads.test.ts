/**
 * Steady downloads. If slow clients are disconnected for waiting ones, an attacker with few connections could get other
 * clients' downloads cut off although they progress steadily: the system takes a megabyte at a time from the proxy, and
 * until it has room for the next one, the client seems not to read at all. At 600 KB/s that takes two seconds.
 *
 * Sallyport counts bytes: a client that reads 256 KiB/s over five seconds is never disconnected for another.
 */
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { startCrowd } from "../../support/crowd.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { openSocket, type Peer, request } from "../../support/raw-client.ts";
import { startSallyport } from "../../support/sallyport.ts";

const PLACES = 8;
const VICTIMS = 3;
const BYTES_PER_SECOND = 600_000;
/** More than the system and Sallyport buffer for a client, plus a while of reading. */
const BYTES = 14_000_000;
const EVERY_MS = 50;

/**
 * Reads at a steady rate until everything has arrived or the connection ends. It pauses after each chunk that is ahead
 * of time: a client that paused only every 50 ms would read many megabytes at once on a fast machine, then nothing for
 * ten seconds.
 *
 * @returns the bytes received
 */
async function readEvenly(socket: Socket): Promise<number> {
  const began = performance.now();
  const isAhead = () => read.bytes >= ((performance.now() - began) / 1000) * BYTES_PER_SECOND;
  const read = { bytes: 0 };
  const take = (chunk: Buffer) => {
    read.bytes += chunk.length;
    if (isAhead()) socket.pause();
  };
  socket.on("data", take).pause();
  for (; !socket.closed && read.bytes < BYTES; await delay(EVERY_MS))
    if (!isAhead()) socket.resume();
  return read.bytes;
}

async function beginDownload(peer: Peer): Promise<Socket> {
  const socket = (await openSocket(peer)).pause();
  onTestFinished(() => void socket.destroy());
  socket.write(request([`GET /public/big?bytes=${BYTES} HTTP/1.1`, "Host: localhost"]));
  return socket;
}

const SLOW = request(["GET /public/slow?ms=300 HTTP/1.1", "Host: localhost"]);

it("are never cut off while other clients compete for connections", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { upstreams: { app: { connections: PLACES, queue: { length: 50, timeout: "10s" } } } },
  });
  const victims = await Promise.all(Array.from({ length: VICTIMS }, () => beginDownload(gate)));
  const reading = Promise.all(victims.map(readEvenly));
  for (const from of ["127.0.0.2", "127.0.0.3"]) {
    const crowd = startCrowd(gate, 2 * PLACES, {
      from,
      each: (socket) => {
        socket.on("data", () => socket.write(SLOW));
        socket.write(SLOW);
      },
    });
    onTestFinished(() => crowd[Symbol.dispose]());
  }
  for (const bytes of await reading) expect(bytes).toBeGreaterThanOrEqual(BYTES);
  expect(gate.log().filter(({ reason }) => reason === "slow_client")).toEqual([]);
}, 120_000);
