/**
 * Other people's downloads. Where slow clients are made to give way, whoever has few places and asks for one more can have a
 * download cut that goes on at an even pace: the system takes a megabyte at a time from the proxy, and until it has room
 * for the next one the client looks as if it did not read at all. At 600 KB/s that is two seconds.
 *
 * Sallyport counts bytes: nobody who takes 256 KiB/s over five seconds gives way to another client.
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
/** More than the systems and Sallyport hold for a client, and a while of reading. */
const BYTES = 14_000_000;
const EVERY_MS = 50;

/**
 * Reads evenly until all is here or the connection ends: it stops at the chunk that is ahead of time. A client that stopped
 * only every 50 ms would take many megabytes at once on a fast machine, and then nothing for ten seconds.
 *
 * @returns how much came, in bytes
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

it("are never cut while others compete for places", async () => {
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
