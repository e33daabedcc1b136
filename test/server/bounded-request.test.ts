/** Bodies of short chunks: one read can return ten thousand, and each uses memory in addition to its byte. */
import { createServer, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { UNLIMITED } from "../../src/server/listener/connection-ledger.ts";
import { UNMETERED } from "../../src/server/listener/reading/fair-reading.ts";
import { createBoundedRequestClass } from "../../src/server/listener/create-server.ts";
import { listening } from "../support/listening.ts";
import { until } from "../support/until.ts";

const HEAD = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
const SHORT = "1\r\nx\r\n";

async function start(
  begin: (request: IncomingMessage) => void,
  { buffered = UNLIMITED, reading = UNMETERED } = {},
): Promise<number> {
  const requests = { IncomingMessage: createBoundedRequestClass(buffered, reading) };
  const server = createServer(requests, (request) => begin(request));
  const standing = await listening(server);
  onTestFinished(() => standing[Symbol.asyncDispose]());
  return standing.port;
}

function send(port: number, text: string): void {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  socket.write(text);
}

it("waiting short chunks are merged, and no more is read than a share", async () => {
  const waiting: IncomingMessage[] = [];
  const port = await start((request) => void waiting.push(request));
  send(port, HEAD + SHORT.repeat(400_000));
  await until(() => (waiting[0]?.socket.isPaused() ?? false) && waiting[0]?.readableLength !== 0);
  const [request] = waiting;
  const waits = request?.readableLength ?? 0;
  expect(waits).toBeLessThan(128 * 1024);
  let pieces = 0;
  let bytes = 0;
  request?.on("data", (chunk: Buffer) => {
    if (bytes < waits) pieces += 1;
    bytes += chunk.length;
  });
  await until(() => bytes >= waits);
  expect(pieces).toBeLessThan(waits / 500);
});

it("a body of long and short chunks arrives byte for byte", async () => {
  const parts = Array.from({ length: 400 }, (_, i) =>
    String(i % 10).repeat(1 + ((i * 37) % 2_500)),
  );
  const arrived = Promise.withResolvers<string>();
  const port = await start((request) => {
    let text = "";
    request.setEncoding("latin1").on("data", (part: string) => (text += part));
    request.on("end", () => arrived.resolve(text));
  });
  const chunks = parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
  send(port, `${HEAD}${chunks.join("")}0\r\n\r\n`);
  expect(await arrived.promise).toBe(parts.join(""));
});

it("a body is charged to its client, 64 short chunks as one unit", async () => {
  let charged = 0;
  let read = 0;
  const reading = { ...UNMETERED, charge: () => void (charged += 1) };
  const begin = (request: IncomingMessage): void => {
    request.on("data", (chunk: Buffer) => void (read += chunk.length));
  };
  const port = await start(begin, { reading });
  send(port, `${HEAD}${SHORT.repeat(640)}0\r\n\r\n`);
  await until(() => read === 640);
  expect(charged).toBe(10);
  send(port, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
  await until(() => read === 645);
  expect(charged).toBe(11);
});

it("a waiting body is measured, and no more of it is read while the budget is scarce", async () => {
  let measured = 0;
  const waiting: IncomingMessage[] = [];
  const budget = { ...UNLIMITED, measure: () => void (measured += 1) };
  const begin = (request: IncomingMessage): void => void waiting.push(request);
  const port = await start(begin, { buffered: budget });
  const body = "b".repeat(1_000);
  const post = `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n${body}`;
  send(port, post);
  await until(() => waiting[0]?.readableLength === 1_000);
  expect(measured).toBe(1);
  expect(waiting[0]?.socket.isPaused()).toBe(false);
  const scarce = await start(begin, { buffered: { ...budget, scarce: true } });
  send(scarce, post);
  await until(() => waiting[1]?.readableLength === 1_000);
  expect(waiting[1]?.socket.isPaused()).toBe(true);
});
