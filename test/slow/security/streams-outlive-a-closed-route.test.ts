/**
 * Access that outlives a closed route. An operator closes a route in an emergency: requires a token or a group, removes
 * the route, or removes the key that a stolen token was signed with. New requests are refused from then on, but open
 * WebSockets and event streams would continue for hours if nothing checked them again.
 *
 * Sallyport decides again about everything that is open, with the new configuration: within a second, a WebSocket is
 * closed with 1008, and a response is cut off. What would still be allowed continues.
 */
import { unlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { keysCommand } from "../../cli/command.ts";
import { ask } from "../../support/ask.ts";
import { editConfiguration } from "../../support/edits.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { logLine } from "../../support/log-line.ts";
import { exchange, openSocket, request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  type WebSocketBackend,
} from "../../support/websocket.ts";

/** Within one second, with slack for a busy machine. */
const SOON_MS = 4_000;

let events: EchoBackend;
let talk: WebSocketBackend;
beforeAll(async () => {
  events = await startEchoBackend();
  talk = await startWebSocketBackend();
});
afterAll(() => Promise.all([events.close(), talk.close()]));

type Change = Readonly<Record<string, unknown>>;
const GROUPS = { require: { groups: { any: ["admins"] } } };

/** The settings of each route before and after; undefined if it is removed. */
const CLOSED: readonly (readonly [name: string, before: Change, after: Change | undefined])[] = [
  ["open", { auth: "none" }, {}],
  ["watched", { mode: "monitor" }, { mode: "enforce" }],
  ["grouped", {}, GROUPS],
  ["gone", { hosts: ["gone.example.com", "127.0.0.1"] }, undefined],
];
const STAYING: readonly (readonly [name: string, before: Change, after: Change])[] = [
  ["still-open", { auth: "none" }, { auth: "none" }],
  ["with-token", { auth: "none" }, {}],
  ["same", {}, {}],
];
/** The routes that are requested with a token. */
const CALLERS = new Set(["grouped", "gone", "with-token", "same"]);
const ALL = [...CLOSED, ...STAYING];

const routesOf = (which: "before" | "after") =>
  ALL.flatMap(([name, before, after]) => {
    const settings = which === "before" ? before : after;
    if (settings === undefined) return [];
    return [
      { name, path: `/${name}/`, upstream: "app", ...settings },
      { name: `${name}-ws`, path: `/ws/${name}/`, upstream: "talk", ...settings },
    ];
  });

async function start(): Promise<Sallyport> {
  return startSallyport({
    target: events.url,
    config: {
      server: { workers: 2 },
      routes: routesOf("before"),
      upstreams: { talk: { targets: [talk.url] } },
    },
  });
}

function headersOf(gate: Sallyport, name: string): Record<string, string> {
  return CALLERS.has(name) ? { authorization: `Bearer ${gate.token}` } : {};
}

/** Opens an event stream. @returns its socket and what has been received. */
async function listen(gate: Sallyport, name: string) {
  const socket = await openSocket(gate);
  onTestFinished(() => void socket.destroy());
  let received = "";
  socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
  socket.on("error", () => undefined);
  const fields = Object.entries(headersOf(gate, name)).map(([key, value]) => `${key}: ${value}`);
  const before = events.listeners();
  socket.write(request([`GET /${name}/sse HTTP/1.1`, "Host: 127.0.0.1", ...fields]));
  await until(() => events.listeners() === before + 1);
  return { socket, received: () => received };
}

it("ends only what would no longer be allowed", async () => {
  await using gate = await start();
  const sockets = new Map<string, Awaited<ReturnType<typeof openWebSocket>>>();
  const streams = new Map<string, Awaited<ReturnType<typeof listen>>>();
  for (const [name] of ALL) {
    const socket = await openWebSocket(gate, `/ws/${name}/x`, headersOf(gate, name));
    onTestFinished(() => socket[Symbol.dispose]());
    socket.send(name);
    expect(await socket.message()).toBe(name);
    sockets.set(name, socket);
    streams.set(name, await listen(gate, name));
  }
  await editConfiguration(gate, (config) => (config.routes = routesOf("after")));
  const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
  const began = performance.now();
  for (const [name] of CLOSED) {
    expect(await sockets.get(name)?.closed, name).toBe(1008);
    await until(() => streams.get(name)?.socket.closed === true);
  }
  expect(performance.now() - began).toBeLessThan(SOON_MS);
  for (const [name] of CLOSED) {
    await logLine(gate, { path: `/${name}/sse`, status: 200, reason: "no_longer_allowed" });
    await logLine(gate, { path: `/ws/${name}/x`, status: 101, reason: "no_longer_allowed" });
  }
  events.emitEvent("still there");
  for (const [name] of STAYING) {
    sockets.get(name)?.send("still there");
    expect(await sockets.get(name)?.message(), name).toBe("still there");
    await until(() => streams.get(name)?.received().includes("still there") === true);
  }
  events.emitEvent(undefined);
}, 60_000);

it("answers requests without a response, and those in the queue", async () => {
  await using gate = await startSallyport({
    target: events.url,
    config: { upstreams: { app: { connections: 1, queue: { timeout: "5m" } } } },
  });
  const hang = request(["GET /public/hang HTTP/1.1", "Host: localhost"]);
  const answers = [
    exchange(gate, hang, { timeoutMs: 30_000 }),
    exchange(gate, hang, { timeoutMs: 30_000 }),
  ];
  await until(async () =>
    (await ask({ port: gate.adminPort }, "/metrics")).body.includes(
      'sallyport_upstream_queue_length{upstream="app"} 1',
    ),
  );
  await editConfiguration(gate, (config) => {
    config.routes = [{ name: "everything", path: "/", upstream: "app" }];
  });
  await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  for (const { last } of await Promise.all(answers)) expect(last.status).toBe(401);
}, 60_000);

it("closes a WebSocket whose token's key was removed", async () => {
  await using directory = await temporaryDirectory();
  const place = join(directory.path, "keys");
  await keysCommand("generate", "-d", place, "--name", "one");
  await using gate = await startSallyport({
    target: talk.url,
    config: { tokens: { keys: place } },
  });
  const bearer = { authorization: `Bearer ${gate.token}` };
  using socket = await openWebSocket(gate, "/x", bearer);
  await keysCommand("rotate", "-d", place, "--name", "two", "--lifetime", "5h");
  socket.send("still there");
  expect(await socket.message()).toBe("still there");
  await unlink(join(place, "one.jwk"));
  expect(await socket.closed).toBe(1008);
  await logLine(gate, { path: "/x", reason: "no_longer_allowed" });
}, 60_000);

it.each([
  {
    what: "the origins that may send cookies",
    after: { cors: undefined },
    headers: { origin: "https://other.example.com", cookie: "session=" },
    path: "/cookie",
  },
  {
    what: "the cookie of sessions",
    after: { browser: { cookie: "__Host-other" } },
    headers: { "sec-fetch-site": "same-origin", cookie: "__Host-sallyport=" },
    path: "/",
  },
])(
  "closes a WebSocket when $what change",
  async ({ after, headers, path }) => {
    await using gate = await startSallyport({
      target: talk.url,
      config: {
        cors: { origins: ["https://other.example.com"], credentials: true },
        browser: {},
        routes: [
          { name: "cookie", path: "/cookie", upstream: "app", tokenFrom: [{ cookie: "session" }] },
          { name: "everything", path: "/", upstream: "app" },
        ],
      },
    });
    const sent = { ...headers, cookie: headers.cookie + gate.token };
    using socket = await openWebSocket(gate, path, sent);
    await editConfiguration(gate, (config) => Object.assign(config, after));
    await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    await expect(openWebSocket(gate, path, sent)).rejects.toThrow(/40[13]/);
    expect(await socket.closed).toBe(1008);
  },
  30_000,
);
