import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { fieldsOf } from "../support/ask.ts";
import { closedPort } from "../support/dead-ends.ts";
import { expectRefusal } from "../support/envelope.ts";
import { valuesOf } from "../support/http-reader.ts";
import { logLine } from "../support/log-line.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  UpgradeRefused,
  type WebSocketBackend,
} from "../support/websocket.ts";

const routes = [
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  { name: "chat", path: "/chat", upstream: "app", rewrite: { addPrefix: "/v1" } },
  { name: "bosses", path: "/boss", require: { groups: { any: ["boss"] } }, upstream: "app" },
];

let backend: WebSocketBackend;
let gate: Sallyport;
let bearer: Record<string, string>;
beforeAll(async () => {
  backend = await startWebSocketBackend();
  gate = await startSallyport({ target: backend.url, config: { routes } });
  bearer = { authorization: `Bearer ${gate.token}` };
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

function upgrade(path: string, headers: readonly string[] = [], protocol = "websocket"): string {
  return request([
    ...[`GET ${path} HTTP/1.1`, "Host: localhost", "Connection: Upgrade", `Upgrade: ${protocol}`],
    ...["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", ...headers],
  ]);
}

async function openNow(through: Sallyport, route: string): Promise<number> {
  const page = await scrape(through);
  return Number(page.value(`sallyport_websocket_connections{route="${route}"}`));
}

describe("a handshake with one of several targets", () => {
  it("that is down or aborts it goes to another target", async () => {
    await using dying = await startRawBackend(() => ({ write: "", then: "reset" }));
    const targets = [`http://127.0.0.1:${await closedPort()}`, dying.url, backend.url];
    const config = { routes, upstreams: { app: { targets, balance: "first" } } };
    const several = await startSallyport({ target: backend.url, config });
    try {
      const token = { authorization: `Bearer ${several.token}` };
      // One retry is allowed, and each of the two failing targets costs an attempt.
      await expect(openWebSocket(several, "/chat", token)).rejects.toThrow(UpgradeRefused);
      using socket = await openWebSocket(several, "/chat", token);
      expect(socket).toBeDefined();
      const page = await scrape(several);
      expect(page.value('sallyport_upstream_targets_left_out{upstream="app"}')).toBe(1);
    } finally {
      await several.close();
    }
  });
});

describe("a handshake that is sent many times", () => {
  it("leaves nothing on the client's connection", async () => {
    await using dying = await startRawBackend(() => ({ write: "", then: "reset" }));
    const retry = { attempts: 5, on: ["502"] };
    const config = {
      routes: routes.map((route) => ({ ...route, retry })),
      upstreams: { app: { targets: [dying.url] } },
    };
    const retrying = await startSallyport({ target: dying.url, config });
    try {
      const token = { authorization: `Bearer ${retrying.token}` };
      await expect(openWebSocket(retrying, "/chat", token)).rejects.toThrow(UpgradeRefused);
      expect(dying.requests()).toHaveLength(6);
      expect(retrying.stderr()).toBe("");
    } finally {
      await retrying.close();
    }
  });
});

describe("an upgrade that is not allowed", () => {
  it.each([
    ["without a token", "/chat", () => [], 401],
    ["with a bad token", "/chat", () => ["Authorization: Bearer bad"], 401],
    ["without the group", "/boss", () => [`Authorization: Bearer ${gate.token}`], 403],
    ["to a path without a route", "/nowhere", () => [`Authorization: Bearer ${gate.token}`], 404],
    ["to a path without a route and without a token", "/nowhere", () => [], 401],
  ])("gets an ordinary response: %s", async (_name, path, headers, status) => {
    const seen = backend.upgrades.length;
    const answer = await exchange(gate, upgrade(path, headers()), { responses: Infinity });
    expectRefusal(answer, status);
    expect(backend.upgrades.length).toBe(seen);
    const line = await logLine(gate, { id: fieldsOf(answer.last)["id"] });
    expect(line).toMatchObject({ status, source: "self", protocol: "websocket" });
  });

  it.each(["h2c", "TLS/1.0", "websocket, h2c"])("gets 400 when it is for %s", async (protocol) => {
    const authorization = `Authorization: Bearer ${gate.token}`;
    const bytes = upgrade("/chat", [authorization], protocol);
    expectRefusal(await exchange(gate, bytes, { responses: Infinity }), 400);
  });

  it("gets 400 at a built-in endpoint", async () => {
    const answer = await exchange(gate, upgrade("/api/v1/version"), { responses: Infinity });
    expectRefusal(answer, 400);
  });
});

describe("an open WebSocket", () => {
  // A URL parser would encode the quotes; http-proxy-3 drops the empty query.
  it.each(["/public/x?q='1'", "/public/x?"])("keeps every byte of %s", async (path) => {
    const answer = await exchange(gate, upgrade(path), { responses: 0 });
    expect(answer.last.status).toBe(101);
    expect(backend.upgrades.at(-1)?.url).toBe(path);
  });

  it("carries text in both directions, with the rewritten path and the identity", async () => {
    using socket = await openWebSocket(gate, "/chat/room%20one?x=1", bearer);
    socket.send("hello");
    expect(await socket.message()).toBe("hello");
    const seen = backend.upgrades.at(-1);
    expect(seen?.url).toBe("/v1/chat/room%20one?x=1");
    const headers: [string, string][] = [];
    const raw = seen?.rawHeaders ?? [];
    for (let i = 0; i + 1 < raw.length; i += 2) headers.push([raw[i] ?? "", raw[i + 1] ?? ""]);
    expect(valuesOf(headers, "x-auth-subject")).toEqual(["alice"]);
    expect(valuesOf(headers, "authorization")).toEqual([]);
    expect(valuesOf(headers, "x-forwarded-for")).toEqual(["127.0.0.1"]);
  });

  it("carries binary messages of any size", async () => {
    const url = `wss://127.0.0.1:${gate.port}/chat`;
    const socket = new WebSocket(url, { ca: gate.ca, headers: bearer });
    await once(socket, "open");
    for (const bytes of [0, 1, 126, 65_536, 8 * 1024 * 1024]) {
      const message = randomBytes(bytes);
      socket.send(message);
      const [echoed, binary]: unknown[] = await once(socket, "message");
      expect(binary).toBe(true);
      expect(Buffer.isBuffer(echoed) && echoed.equals(message)).toBe(true);
    }
    socket.terminate();
  });

  it("is counted while it is open, and logged when it ends", async () => {
    await until(async () => (await openNow(gate, "chat")) === 0);
    using first = await openWebSocket(gate, "/chat/counted", bearer);
    using second = await openWebSocket(gate, "/chat/counted", bearer);
    expect(await openNow(gate, "chat")).toBe(2);
    first.close(1000);
    expect(await first.closed).toBe(1000);
    await until(async () => (await openNow(gate, "chat")) === 1);
    second[Symbol.dispose]();
    await until(async () => (await openNow(gate, "chat")) === 0);
    const line = await logLine(gate, { path: "/chat/counted", status: 101 });
    expect(line).toMatchObject({
      route: "chat",
      upstream: "app",
      source: "upstream",
      auth: "allowed",
      subject: "alice",
      protocol: "websocket",
    });
  });

  it("counts bytes that arrive together with the 101", async () => {
    const write =
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x81\x02hi";
    await using hasty = await startRawBackend(() => ({ write, then: "close" }));
    await using through = await startSallyport({ withoutToken: true, target: hasty.url });
    const { raw } = await exchange(through, upgrade("/public/hasty"), { responses: Infinity });
    expect(raw.endsWith("\r\n\r\n\x81\x02hi")).toBe(true);
    expect(await logLine(through, { status: 101 })).toMatchObject({ bytes_out: 4 });
  });

  it("forwards the client's close code to the backend", async () => {
    using socket = await openWebSocket(gate, "/public/leaving");
    socket.close(4001);
    expect(await socket.closed).toBe(4001);
    await until(() => backend.closeCodes.includes(4001));
  });

  it("ends when the client closes its connection", async () => {
    const before = backend.open();
    const socket = await openWebSocket(gate, "/public/gone");
    await until(() => backend.open() === before + 1);
    socket[Symbol.dispose]();
    await until(() => backend.open() === before);
  });

  it("ends when the backend closes its connection", async () => {
    using socket = await openWebSocket(gate, "/public/dropped");
    backend.dropAll();
    expect(await socket.closed).toBe(1006);
  });
});

describe("a backend that refuses the upgrade", () => {
  it("has its response passed unchanged", async () => {
    const refused: unknown = await openWebSocket(gate, "/public/refuse").catch((error) => error);
    expect(refused).toBeInstanceOf(UpgradeRefused);
    const { last } = await exchange(gate, upgrade("/public/refuse"), { responses: Infinity });
    expect(last.status).toBe(403);
    expect(last.body).toBe("no");
    expect(last.header("proxy-status")).toBeUndefined();
  });

  it("gets 502 when it is down", async () => {
    const target = `http://127.0.0.1:${await closedPort()}`;
    await using through = await startSallyport({ withoutToken: true, target });
    const answer = await exchange(through, upgrade("/public/x"), { responses: Infinity });
    expectRefusal(answer, 502);
    expect(answer.last.header("proxy-status")).toBe("sallyport; error=connection_refused");
  });

  it("gets 504 when it hangs, and an idle WebSocket is closed", async () => {
    await using silent = await startRawBackend(() => "hang");
    const upstreams = {
      app: { targets: [silent.url], websocket: { handshake: "200ms" } },
      quiet: { targets: [backend.url], websocket: { idle: "200ms" } },
    };
    const quiet = { name: "quiet", path: "/quiet", auth: "none", upstream: "quiet" };
    await using through = await startSallyport({
      withoutToken: true,
      target: silent.url,
      config: { upstreams, routes: [...routes, quiet] },
    });
    const answer = await exchange(through, upgrade("/public/x"), { responses: Infinity });
    expectRefusal(answer, 504);
    expect(answer.last.header("proxy-status")).toBe("sallyport; error=http_response_timeout");
    using socket = await openWebSocket(through, "/quiet");
    expect(await socket.closed).toBe(1006);
  });
});

describe("SIGTERM", () => {
  it("closes WebSockets with 1001 and ends with 0", async () => {
    await using leaving = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: { routes },
    });
    const codes = backend.closeCodes.length;
    using socket = await openWebSocket(leaving, "/public/x");
    socket.send("still here");
    expect(await socket.message()).toBe("still here");
    expect(await leaving.stop()).toBe(0);
    expect(await socket.closed).toBe(1001);
    await until(() => backend.closeCodes.slice(codes).includes(1001));
  });
});
