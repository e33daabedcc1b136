/**
 * Access that outlives its token. A download, an upload, an event stream or a long poll takes hours if its client wants
 * it to: anyone who once had a token could keep reading and writing as its owner, long after `exp`, or after the token
 * was stolen and revoked.
 *
 * Sallyport ends them with the token: a WebSocket with 1008, a request without a response with 401, the rest by a
 * cut-off.
 */
import { randomUUID } from "node:crypto";
import { chmod } from "node:fs/promises";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { ask } from "../../support/ask.ts";
import { byKey, compact } from "../../support/compact-token.ts";
import { editConfiguration } from "../../support/edits.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { logLine } from "../../support/log-line.ts";
import { openSocket, request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { claims, header, OWN, seconds } from "../../support/token-gate.ts";
import { until } from "../../support/until.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  type WebSocketBackend,
} from "../../support/websocket.ts";

/** Within one second, with slack for a busy machine. */
const SOON_MS = 4_000;
/** A token lifetime long enough to open everything, in seconds. */
const SHORT_S = 5;

let events: EchoBackend;
let talk: WebSocketBackend;
let keys: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  events = await startEchoBackend();
  talk = await startWebSocketBackend();
  keys = await temporaryDirectory();
  const pem = OWN.privateKey.export({ format: "pem", type: "pkcs8" });
  await chmod(await keys.write("own.pem", pem), 0o600);
});
afterAll(() => Promise.all([events.close(), talk.close(), keys.close()]));

const start = (streams: object = {}) =>
  startSallyport({
    target: events.url,
    config: {
      server: { workers: 2 },
      tokens: { keys: keys.path, streams },
      routes: [
        { name: "talk", path: "/ws/", upstream: "talk" },
        { name: "watched", path: "/watched/", mode: "monitor", upstream: "app" },
        { name: "counted", path: "/upload", upstream: "app", concurrency: { requests: 100 } },
        { name: "everything", path: "/", upstream: "app" },
      ],
      upstreams: { talk: { targets: [talk.url] } },
    },
  });

const tokenFor = (life: number) => {
  const jti = randomUUID();
  const exp = seconds() + life;
  return { jti, exp, text: compact(header(), claims({ jti, exp }), byKey(OWN.privateKey)) };
};

const revoke = (gate: Sallyport, jti: string) =>
  ask({ port: gate.adminPort }, `/-/revoke?jti=${jti}`, { method: "POST" });

/** A request that runs until it is ended. */
interface Running {
  readonly path: string;
  readonly closed: () => boolean;
  readonly received: () => string;
}

async function send(gate: Sallyport, token: string, line: string, body?: string): Promise<Running> {
  const [, path = ""] = line.split(" ");
  const socket = await openSocket(gate);
  onTestFinished(() => void socket.destroy());
  let received = "";
  let closed = false;
  socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
  socket.on("close", () => (closed = true));
  const length = body === undefined ? [] : ["Content-Length: 1000"];
  const head = [`${line} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`, ...length];
  socket.write(request(head, body));
  return { path, closed: () => closed, received: () => received };
}

/** Opens everything that a token can keep open. */
async function openAll(gate: Sallyport, token: string) {
  const before = events.listeners();
  const socket = await openWebSocket(gate, "/ws/x", { authorization: `Bearer ${token}` });
  onTestFinished(() => socket[Symbol.dispose]());
  const stream = await send(gate, token, "GET /sse");
  const watched = await send(gate, token, "GET /watched/sse");
  const poll = await send(gate, token, "GET /hang");
  const upload = await send(gate, token, "POST /upload", "half of it");
  await until(() => events.listeners() === before + 2);
  return { socket, stream, watched, poll, upload };
}

async function expectEnded(
  gate: Sallyport,
  open: Awaited<ReturnType<typeof openAll>>,
  reason: string,
) {
  const { socket, stream, watched, poll, upload } = open;
  const began = performance.now();
  expect(await socket.closed).toBe(1008);
  await until(() => stream.closed());
  await until(() => [poll, upload].every(({ received }) => received().includes("\r\n\r\n{")));
  expect(performance.now() - began).toBeLessThan(SOON_MS);
  for (const { received } of [poll, upload]) expect(received()).toMatch(/^HTTP\/1\.1 401 /);
  await logLine(gate, { path: "/ws/x", status: 101, reason });
  await logLine(gate, { path: "/sse", status: 200, reason });
  await logLine(gate, { path: "/hang", status: 401, reason });
  await logLine(gate, { path: "/upload", status: 401, reason });
  const { body } = await ask({ port: gate.adminPort }, "/metrics");
  expect(body).toContain(`sallyport_streams_ended_total{reason="${reason}"} 4`);
  expect(watched.closed()).toBe(false);
}

it("ends open requests when their token expires, and not before", async () => {
  await using gate = await start();
  const { exp, text } = tokenFor(SHORT_S);
  const open = await openAll(gate, text);
  await open.socket.closed;
  expect(Date.now()).toBeGreaterThanOrEqual(exp * 1000);
  await expectEnded(gate, open, "token_expired");
}, 60_000);

it("ends only the open requests of a revoked token", async () => {
  await using gate = await start({ grace: "1h" });
  const [gone, stays] = [tokenFor(600), tokenFor(600)];
  const open = await openAll(gate, gone.text);
  const other = await openAll(gate, stays.text);
  await revoke(gate, gone.jti);
  await expectEnded(gate, open, "revoked");
  other.socket.send("still there");
  expect(await other.socket.message()).toBe("still there");
  events.emitEvent("still there");
  await until(() => other.stream.received().includes("still there"));
  expect([other.poll.closed(), other.upload.closed()]).toEqual([false, false]);
}, 60_000);

it("ends requests of monitor mode when a reload enforces the route: at once, or with their token", async () => {
  await using gate = await start();
  const [over, revoked] = [tokenFor(SHORT_S), tokenFor(600)];
  const ended = await send(gate, over.text, "GET /watched/sse");
  const living = await send(gate, revoked.text, "GET /watched/sse");
  await until(() => [ended, living].every(({ received }) => received().includes(" 200 ")));
  await until(() => Date.now() > over.exp * 1000 + 1_000);
  expect([ended.closed(), living.closed()]).toEqual([false, false]);
  await editConfiguration(gate, ({ routes }) => {
    for (const route of routes) Object.assign(route, { mode: "enforce" });
  });
  const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
  const began = performance.now();
  await until(() => ended.closed());
  expect(performance.now() - began).toBeLessThan(SOON_MS);
  await logLine(gate, { path: "/watched/sse", status: 200, reason: "token_expired" });
  events.emitEvent("still there");
  await until(() => living.received().includes("still there"));
  await revoke(gate, revoked.jti);
  await until(() => living.closed());
  await logLine(gate, { path: "/watched/sse", status: 200, reason: "revoked" });
}, 60_000);

it.each([
  ["during the grace period", { grace: "1h" }],
  ["with endWithToken: false", { endWithToken: false }],
])(
  "lets open requests continue %s",
  async (_when, streams) => {
    await using gate = await start(streams);
    const { exp, text } = tokenFor(SHORT_S);
    const open = await openAll(gate, text);
    await until(() => Date.now() > exp * 1000 + 1_000);
    open.socket.send("still there");
    expect(await open.socket.message()).toBe("still there");
    events.emitEvent("still there");
    await until(() => open.stream.received().includes("still there"));
    expect([open.poll.closed(), open.upload.closed()]).toEqual([false, false]);
  },
  60_000,
);
