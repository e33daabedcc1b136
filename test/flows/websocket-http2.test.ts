/** WebSockets over HTTP/2 (RFC 8441) behave the same as over HTTP/1.1. */
import { randomBytes } from "node:crypto";
import { constants } from "node:http2";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { closedPort } from "../support/dead-ends.ts";
import { editConfiguration } from "../support/edits.ts";
import { connectHttp2, type Http2Client } from "../support/http2-client.ts";
import { connectTunnel, openOverHttp2 } from "../support/http2-websocket.ts";
import { logLine } from "../support/log-line.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { startWebSocketBackend, type WebSocketBackend } from "../support/websocket.ts";

const server = { http2: true };
const routes = [
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  { name: "chat", path: "/chat", upstream: "app", rewrite: { addPrefix: "/v1" } },
  { name: "bosses", path: "/boss", require: { groups: { any: ["boss"] } }, upstream: "app" },
  { name: "page", path: "/page", upstream: "app", tokenFrom: [{ cookie: "session" }] },
  { name: "script", path: "/script", upstream: "app", tokenFrom: [{ websocketProtocol: true }] },
];

const stack = new AsyncDisposableStack();
let backend: WebSocketBackend;
let gate: Sallyport;
let client: Http2Client;
let bearer: Record<string, string>;
beforeAll(async () => {
  backend = stack.use(await startWebSocketBackend());
  gate = stack.use(await startSallyport({ target: backend.url, config: { server, routes } }));
  bearer = { authorization: `Bearer ${gate.token}` };
});
beforeEach(async () => {
  client = await connectHttp2(gate);
  return () => client[Symbol.asyncDispose]();
});
afterAll(() => stack.disposeAsync());

async function openNow(through: Sallyport, route: string): Promise<number> {
  const page = await scrape(through);
  return Number(page.value(`sallyport_websocket_connections{route="${route}"}`));
}

describe("a WebSocket over HTTP/2", () => {
  it("carries messages in both directions, with the rewritten path and the identity", async () => {
    using socket = await openOverHttp2(client, "/chat/room%20one?x=1", bearer);
    socket.send("hello");
    expect(await socket.message()).toBe("hello");
    const large = randomBytes(1024 * 1024).toString("base64");
    socket.send(large);
    expect((await socket.message()) === large).toBe(true);
    const seen = backend.upgrades.at(-1);
    expect(seen?.url).toBe("/v1/chat/room%20one?x=1");
    const names = seen?.rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
    expect(names).toContain("x-auth-subject");
    expect(names).not.toContain("authorization");
    expect(names?.filter((name) => name.startsWith(":"))).toEqual([]);
    expect(names?.filter((name) => name === "sec-websocket-key")).toHaveLength(1);
  });

  it("does not count as a response time", async () => {
    const name = 'sallyport_http_request_duration_seconds_count{route="chat"}';
    const finished = 'sallyport_http_requests_total{route="chat",method="GET",code="200"}';
    const before = await scrape(gate);
    const socket = await openOverHttp2(client, "/chat/x", bearer);
    socket.close(1000);
    const count = (before.value(finished) ?? 0) + 1;
    await until(async () => (await scrape(gate)).value(finished) === count);
    expect((await scrape(gate)).value(name)).toBe(before.value(name));
  });

  it("shares its connection with other WebSockets and requests", async () => {
    const sockets = await Promise.all(
      Array.from({ length: 20 }, (_, n) => openOverHttp2(client, `/chat/${n}`, bearer)),
    );
    for (const [n, socket] of sockets.entries()) socket.send(`to ${n}`);
    expect(await Promise.all(sockets.map((socket) => socket.message()))).toEqual(
      sockets.map((_, n) => `to ${n}`),
    );
    expect((await client.ask({ ":path": "/api/v1/version" })).status).not.toBe(0);
    expect(await openNow(gate, "chat")).toBe(20);
    for (const socket of sockets) socket.close(1000);
    await until(async () => (await openNow(gate, "chat")) === 0);
    expect(client.session.closed).toBe(false);
  });

  it("is logged when it ends, and the client's close code is forwarded", async () => {
    using socket = await openOverHttp2(client, "/chat/logged", bearer);
    socket.send("four");
    await socket.message();
    socket.close(4002);
    expect(await socket.closed).toBe(4002);
    await until(() => backend.closeCodes.includes(4002));
    expect(await logLine(gate, { path: "/chat/logged" })).toMatchObject({
      method: "GET",
      status: 200,
      route: "chat",
      source: "upstream",
      auth: "allowed",
      subject: "alice",
      protocol: "websocket",
      bytes_in: 18,
      bytes_out: 10,
    });
  });

  it("ends when the client resets its stream, and the connection stays open", async () => {
    const before = backend.open();
    const { stream, status } = await connectTunnel(client, "/chat", bearer);
    expect(status).toBe(200);
    await until(() => backend.open() === before + 1);
    stream.close(constants.NGHTTP2_CANCEL);
    await until(() => backend.open() === before);
    expect((await client.ask({ ":path": "/nowhere" })).status).toBe(401);
  });

  it("ends when the connection is lost", async () => {
    const before = backend.open();
    await openOverHttp2(client, "/chat", bearer);
    await until(() => backend.open() === before + 1);
    client.session.destroy();
    await until(() => backend.open() === before);
  });

  it("ends when the backend closes its connection", async () => {
    using socket = await openOverHttp2(client, "/public/dropped");
    backend.dropAll();
    expect(await socket.closed).toBe(1006);
  });
});

describe("an extended CONNECT that is not allowed", () => {
  it.each([
    ["without a token", "/chat", () => ({}), 401],
    ["with a bad token", "/chat", () => ({ authorization: "Bearer bad" }), 401],
    ["without the group", "/boss", () => bearer, 403],
    ["to a path without a route", "/nowhere", () => bearer, 404],
    ["to a built-in endpoint", "/api/v1/version", () => bearer, 400],
    ["with a Content-Length", "/chat", () => ({ ...bearer, "content-length": "7" }), 400],
    ["for another protocol", "/chat", () => ({ ...bearer, ":protocol": "connect-udp" }), 501],
    ["with another Host", "/chat", () => ({ ...bearer, host: "admin.example" }), 400],
    ["with dot segments", "/public/../chat", () => bearer, 400],
  ])("gets an ordinary response: %s", async (_name, path, fields, status) => {
    const seen = backend.upgrades.length;
    const answer = await connectTunnel(client, path, fields());
    expect(answer.status).toBe(status);
    expect(JSON.parse(await answer.body())).toMatchObject({ success: false });
    expect(backend.upgrades.length).toBe(seen);
    // The stream is closed although the client has not ended it.
    await until(() => answer.stream.closed);
    expect((await client.ask({ ":path": "/nowhere" })).status).toBe(401);
  });

  it.each([
    ["from another site", { "sec-fetch-site": "cross-site", origin: "https://evil.example" }, 403],
    ["from an unknown origin", {}, 403],
    ["from the same origin", { "sec-fetch-site": "same-origin" }, 200],
  ])("with a cookie, %s", async (_name, fields, status) => {
    const cookie = `session=${gate.token}`;
    const { stream, ...answer } = await connectTunnel(client, "/page", { cookie, ...fields });
    expect(answer.status).toBe(status);
    stream.close();
  });

  it("takes the token from the subprotocols, and never selects the token", async () => {
    const offer = { "sec-websocket-protocol": `bearer, ${gate.token}, v1` };
    const { stream, status, headers } = await connectTunnel(client, "/script", offer);
    expect([status, headers["sec-websocket-protocol"]]).toEqual([200, "v1"]);
    expect(headers["sec-websocket-accept"]).toBeUndefined();
    expect(JSON.stringify(backend.upgrades.at(-1))).not.toContain(gate.token.slice(-40));
    stream.close();
  });
});

describe("a backend that refuses it", () => {
  it("has its response passed unchanged", async () => {
    const answer = await connectTunnel(client, "/public/refuse");
    expect([answer.status, await answer.body()]).toEqual([403, "no"]);
    await until(() => answer.stream.closed);
  });

  it("gets 502 if it is down and 504 if it hangs, and an idle WebSocket is closed", async () => {
    await using silent = await startRawBackend(() => "hang");
    const upstreams = {
      app: { targets: [`http://127.0.0.1:${await closedPort()}`] },
      silent: { targets: [silent.url], websocket: { handshake: "200ms" } },
      quiet: { targets: [backend.url], websocket: { idle: "200ms" } },
    };
    const to = (name: string) => ({ name, path: `/${name}`, auth: "none", upstream: name });
    const all = [...routes, to("silent"), to("quiet")];
    const config = { server: { ...server, tls: "off" }, upstreams, routes: all };
    await using through = await startSallyport({ withoutToken: true, target: "", config });
    await using http2 = await connectHttp2({ port: through.port });
    expect((await connectTunnel(http2, "/public/x")).status).toBe(502);
    expect((await connectTunnel(http2, "/silent")).status).toBe(504);
    using socket = await openOverHttp2(http2, "/quiet");
    expect(await socket.closed).toBe(1006);
    expect(await logLine(through, { path: "/quiet" })).toMatchObject({ reason: "idle_timeout" });
  });
});

describe("the end of its authorization", () => {
  it("closes it with 1008 when the token or the route ends; other reloads do not", async () => {
    await using through = await startSallyport({
      target: backend.url,
      config: { server, routes, tokens: { revocation: { logout: true } } },
    });
    await using http2 = await connectHttp2(through);
    const token = { authorization: `Bearer ${through.token}` };
    using open = await openOverHttp2(http2, "/public/x");
    using revoked = await openOverHttp2(http2, "/chat", token);
    const logout = { ":method": "POST", ":path": "/api/logout", ...token };
    expect((await http2.ask(logout)).status).toBe(200);
    expect(await revoked.closed).toBe(1008);
    expect(await logLine(through, { reason: "revoked", protocol: "websocket" })).toBeDefined();
    await editConfiguration(through, (config) => {
      config.routes.splice(1, 1);
    });
    const reload = (): Promise<unknown> =>
      ask({ port: through.adminPort }, "/-/reload", { method: "POST" });
    await reload();
    open.send("still there");
    expect(await open.message()).toBe("still there");
    await editConfiguration(through, (config) => {
      config.routes.splice(0, 1);
    });
    await reload();
    expect(await open.closed).toBe(1008);
    expect(await logLine(through, { reason: "no_longer_allowed" })).toMatchObject({
      protocol: "websocket",
      status: 200,
    });
  });

  it("closes with 1001 when Sallyport stops", async () => {
    await using leaving = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: { server, routes },
    });
    await using http2 = await connectHttp2(leaving);
    using socket = await openOverHttp2(http2, "/public/x");
    socket.send("still here");
    expect(await socket.message()).toBe("still here");
    expect(await leaving.stop()).toBe(0);
    expect(await socket.closed).toBe(1001);
  });
});
