/**
 * Requests that wait on many connections. Node accepts one connection per turn of the event loop. If each turn
 * answers one request of every pipelining connection, a turn takes longer the more such connections there are: with
 * nine hundred of them, from 64 addresses and without a token, a new client was not accepted for eleven seconds.
 * Sallyport starts only a few waiting requests in each turn, and continues in the next.
 */
import { createConnection, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { useSallyport } from "../support/pair.ts";
import { request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const REQUEST = request(["GET /app/x HTTP/1.1", "Host: localhost"]);
const PIPELINES = 300;
const LENGTH = 95;
const NEWCOMERS = 90;

const standing = useSallyport(undefined, {
  withoutToken: true,
  config: { server: { tls: "off" } },
});

/** Opens a connection that counts its answers. */
function client(port: number, localAddress: string) {
  const socket: Socket = createConnection({ host: "127.0.0.1", port, localAddress });
  const state = { socket, open: false, answers: 0 };
  socket.setEncoding("latin1").on("data", (text: string) => {
    state.answers += text.split("HTTP/1.1 401").length - 1;
  });
  socket.on("connect", () => (state.open = true)).on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  return state;
}

it("serves new clients before hundreds of pipelines have ended", async () => {
  const { port } = standing().gate;
  const pipelines = Array.from({ length: PIPELINES }, () => client(port, "127.0.0.2"));
  await until(() => pipelines.every(({ open }) => open), 30_000);
  for (const { socket } of pipelines) socket.write(REQUEST.repeat(LENGTH));
  const newcomers = Array.from({ length: NEWCOMERS }, () => client(port, "127.0.0.3"));
  for (const { socket } of newcomers) socket.on("connect", () => socket.write(REQUEST));
  await until(() => newcomers.every(({ answers }) => answers === 1), 60_000);
  const answered = pipelines.reduce((sum, { answers }) => sum + answers, 0);
  // Almost all of the 28,500 if each turn started one request of every connection.
  expect(answered).toBeLessThan((PIPELINES * LENGTH) / 2);
}, 120_000);
