/**
 * Performs handshakes repeatedly on several connections at a time. Takes the options as JSON in the first argument. Prints
 * "warm" when it begins to count, and finally the number of handshakes as JSON.
 */
import { once } from "node:events";
import { connect } from "node:tls";
import type { Handshakes, HandshakesResult } from "../load/handshakes.ts";

const CONCURRENT = 8;
const WARM_UP_SECONDS = 1;

const { port, ca, token, resumed, seconds }: Handshakes = JSON.parse(process.argv[2] ?? "{}");
const REQUEST = `GET /orders/4711 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`;

/** Opens one connection and sends one request. @returns a session to resume. */
async function shakeHands(session: Buffer | undefined): Promise<Buffer | undefined> {
  const where = { host: "127.0.0.1", port, ca, servername: "localhost" };
  const socket = connect({ ...where, minVersion: "TLSv1.3", ...(session && { session }) });
  let next: Buffer | undefined;
  let answer = "";
  let reused = false;
  socket.once("secureConnect", () => (reused = socket.isSessionReused()));
  socket.on("session", (made: Buffer) => (next = made));
  socket.setEncoding("latin1").on("data", (text: string) => (answer += text));
  socket.on("end", () => socket.end());
  socket.write(REQUEST);
  await once(socket, "close");
  if (!answer.startsWith("HTTP/1.1 200 ")) throw new Error("a connection was not answered");
  if (reused !== (session !== undefined)) {
    throw new Error("a session was not resumed, or one that was not offered");
  }
  return next;
}

async function shakeHandsFor(ms: number): Promise<number> {
  const end = performance.now() + ms;
  let count = 0;
  await Promise.all(
    Array.from({ length: CONCURRENT }, async () => {
      let session = resumed ? await shakeHands(undefined) : undefined;
      while (performance.now() < end) {
        const next = await shakeHands(session);
        if (resumed) session = next ?? session;
        count += 1;
      }
    }),
  );
  return count;
}

await shakeHandsFor(WARM_UP_SECONDS * 1000);
console.log("warm");
const result: HandshakesResult = { handshakes: await shakeHandsFor(seconds * 1000) };
console.log(`result ${JSON.stringify(result)}`);
