/**
 * Requests that wait on many connections. Node accepts one connection in a turn of the event loop. Where each turn answers
 * one request of every connection that pipelines, a turn lasts as long as there are such connections: behind nine hundred
 * of them, from 64 addresses and without a token, a new client was not accepted for eleven seconds.
 *
 * Sallyport begins a few requests that waited behind others in each turn, and goes on in the next.
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

const standing = useSallyport(undefined, { config: { server: { tls: "off" } } });

/** A connection that counts its answers. */
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

it("serves new clients before hundreds of pipelines are at their end", async () => {
  const { port } = standing().gate;
  const pipelines = Array.from({ length: PIPELINES }, () => client(port, "127.0.0.2"));
  await until(() => pipelines.every(({ open }) => open), 30_000);
  for (const { socket } of pipelines) socket.write(REQUEST.repeat(LENGTH));
  const newcomers = Array.from({ length: NEWCOMERS }, () => client(port, "127.0.0.3"));
  for (const { socket } of newcomers) socket.on("connect", () => socket.write(REQUEST));
  await until(() => newcomers.every(({ answers }) => answers === 1), 60_000);
  const answered = pipelines.reduce((sum, { answers }) => sum + answers, 0);
  // All but a few of the 28,500 where each turn begins one of every connection.
  expect(answered).toBeLessThan((PIPELINES * LENGTH) / 2);
}, 120_000);
