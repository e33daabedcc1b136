import { Agent, request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as after } from "node:timers/promises";
import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { openWebSocket, startWebSocketBackend } from "../../support/websocket.ts";

const PER_SECOND = 200;
const BEFORE_MS = 1_000;
const DELAY_MS = 3_000;
/**
 * A load balancer notices failed readiness within the delay and stops sending; requests already sent arrive in time.
 */
const AFTER_MS = 1_200;
const SLOW_MS = 4_000;
const CONNECTIONS = 60;
const UPLOADS = 5;
const WEB_SOCKETS = 5;

/** Records the result of each request. Any status other than 200, and any broken connection, is a failure. */
class Tally {
  readonly failures: string[] = [];
  #running: Promise<void>[] = [];
  count = 0;
  /** The requests in flight. */
  open = 0;

  add(what: string, answer: Promise<number>): void {
    this.count += 1;
    this.open += 1;
    const settled = answer
      .then(
        (status) => void (status === 200 || this.failures.push(`${what}: ${status}`)),
        (error: unknown) => void this.failures.push(`${what}: ${String(error)}`),
      )
      .finally(() => (this.open -= 1));
    this.#running.push(settled);
  }

  async all(): Promise<void> {
    await Promise.all(this.#running);
  }
}

/**
 * Sends requests at a steady rate on keep-alive connections, never more at a time than there are connections. On a
 * machine that is too slow for the rate it sends fewer, and none are queued here.
 */
async function steadily(gate: Sallyport, agent: Agent, tally: Tally, whileMs: number) {
  const { token } = gate;
  const began = performance.now();
  let sent = 0;
  for (let elapsed = 0; elapsed < whileMs; elapsed = performance.now() - began) {
    const due = (elapsed / 1000) * PER_SECOND;
    for (; sent < due && tally.open < CONNECTIONS; sent += 1) {
      const path = sent % 20 === 0 ? "/orders/slow?ms=300" : "/orders/1";
      tally.add(
        path,
        ask(gate, path, { agent, token }).then(({ status }) => status),
      );
    }
    await after(2);
  }
}

/** Uploads a body in ten pieces over `overMs` milliseconds. @returns the status, or 0 if the body was incomplete. */
async function upload({ port, ca, token }: Sallyport, overMs: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const headers = { authorization: `Bearer ${token}` };
  const where = { host: "127.0.0.1", port, ca, servername: "localhost", path: "/upload" };
  const sent = httpsRequest({ ...where, method: "POST", agent: false, headers }, (response) => {
    text(response).then((body) => {
      const whole = JSON.parse(body).bodyLength === 10_000;
      resolve(whole ? (response.statusCode ?? 0) : 0);
    }, reject);
  }).on("error", reject);
  for (let piece = 0; piece < 10; piece += 1) {
    sent.write("x".repeat(1_000));
    await after(overMs / 10);
  }
  sent.end();
  return promise;
}

/** Sends messages and expects echoes until the peer closes. Resolves with the close code. */
async function converse(gate: Sallyport): Promise<number> {
  const headers = { authorization: `Bearer ${gate.token}` };
  using socket = await openWebSocket(gate, "/ws/talk", headers);
  const closed = socket.closed;
  for (let turn = 0; ; turn += 1) {
    socket.send(`${turn}`);
    const heard = await Promise.race([socket.message(), closed]);
    if (typeof heard === "number") return heard;
    if (heard !== `${turn}`) throw new Error(`${heard} instead of ${turn}`);
    await Promise.race([after(20), closed]);
  }
}

it("SIGTERM at 200 requests per second fails no request, upload or WebSocket", async () => {
  await using backend = await startEchoBackend();
  await using talkers = await startWebSocketBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      server: { drain: { delay: `${DELAY_MS}ms`, timeout: "10s" } },
      routes: [
        { name: "ws", path: "/ws/", upstream: "talkers" },
        { name: "everything", path: "/", upstream: "app" },
      ],
      upstreams: { talkers: { targets: [talkers.url] } },
    },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const tally = new Tally();
  const conversations = Array.from({ length: WEB_SOCKETS }, () => converse(gate));
  await steadily(gate, agent, tally, BEFORE_MS);
  for (let i = 0; i < UPLOADS; i += 1) tally.add("upload", upload(gate, SLOW_MS));
  for (let i = 0; i < UPLOADS; i += 1) {
    const slow = ask(gate, `/orders/slow?ms=${SLOW_MS}`, { agent, token: gate.token });
    tally.add(
      "slow",
      slow.then(({ status }) => status),
    );
  }
  const exit = gate.stop();
  await steadily(gate, agent, tally, AFTER_MS);
  expect(await Promise.all(conversations)).toEqual(Array(WEB_SOCKETS).fill(1001));
  await tally.all();
  expect(tally.failures).toEqual([]);
  // 440 and more on an otherwise idle machine.
  expect(tally.count).toBeGreaterThan(50);
  expect(await exit).toBe(0);
  expect(
    gate.log().filter(({ msg }) => msg === "requests that were still running were ended"),
  ).toEqual([]);
  agent.destroy();
}, 30_000);
