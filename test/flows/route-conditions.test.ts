import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { type HoldingBackend, startHoldingBackend } from "../support/holding-backend.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { logLine } from "../support/log-line.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { openWebSocket, startWebSocketBackend } from "../support/websocket.ts";

let backend: EchoBackend;
let canary: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
  canary = await startEchoBackend();
});
afterAll(() => Promise.all([backend.close(), canary.close()]));

const start = (config: object): Promise<Sallyport> =>
  startSallyport({ target: backend.url, config: { server: { tls: "off" }, ...config } });

describe("a route that matches on headers", () => {
  const upstreams = () => ({ app: { targets: [backend.url] }, canary: { targets: [canary.url] } });
  const routes = [
    { name: "all", path: "/", upstream: "app" },
    { name: "canary", path: "/", headers: { "X-Canary": "always" }, upstream: "canary" },
    {
      name: "both",
      path: "/",
      upstream: "app",
      headers: { "x-canary": "always", "X-Region": "eu" },
    },
  ];

  it("beats a route with fewer conditions, and matches only one field with exactly this value", async () => {
    await using gate = await start({ upstreams: upstreams(), routes });
    const seen = async (...fields: string[]): Promise<string> => {
      const before = canary.requests.length;
      const head = ["GET /x HTTP/1.1", "Host: a", `Authorization: Bearer ${gate.token}`];
      const { last } = await exchange(gate, `${[...head, ...fields].join("\r\n")}\r\n\r\n`);
      expect(last.status).toBe(200);
      return canary.requests.length > before ? "canary" : "app";
    };
    expect(await seen("X-Canary: always")).toBe("canary");
    expect(await seen("x-canary: always")).toBe("canary");
    for (const fields of [
      ["X-Canary: Always"],
      ["X-Canary: never"],
      ["X_Canary: always"],
      ["X-Canary: always", "X-Canary: never"],
      ["X-Canary: never", "x-canary: always"],
      ["X-Canary: always", "X-Region: eu"],
      ["X-Canary: always, never"],
    ]) {
      expect([fields, await seen(...fields)]).toEqual([fields, "app"]);
    }
  });
});

describe("a route with networks", () => {
  const config = {
    server: { tls: "off", trustedProxies: ["127.0.0.1"] },
    networks: { office: ["203.0.113.0/24", "2001:db8::/32"] },
    routes: [
      {
        name: "office",
        path: "/office",
        allow: ["office"],
        deny: ["203.0.113.66"],
        upstream: "app",
      },
      { name: "open", path: "/open", auth: "none", deny: ["198.51.100.0/24"], upstream: "app" },
      { name: "all", path: "/", upstream: "app" },
    ],
  };

  it("refuses other clients before checking their token", async () => {
    await using gate = await start(config);
    const status = async (path: string, client: string, token?: string): Promise<number> => {
      const headers = { "x-forwarded-for": client };
      return (await ask(gate, path, { headers, ...(token === undefined ? {} : { token }) })).status;
    };
    expect(await status("/office/x", "203.0.113.7", gate.token)).toBe(200);
    expect(await status("/office/x", "2001:db8:1::1", gate.token)).toBe(200);
    expect(await status("/office/x", "203.0.113.7")).toBe(401);
    expect(await status("/office/x", "203.0.113.66", gate.token)).toBe(403);
    expect(await status("/office/x", "198.51.100.7", gate.token)).toBe(403);
    expect(await status("/office/x", "198.51.100.7", "forged")).toBe(403);
    // Addresses that the client itself claims are not trusted.
    expect(await status("/office/x", "203.0.113.7, 198.51.100.7", gate.token)).toBe(403);
    expect(await status("/open/x", "198.51.100.7")).toBe(403);
    expect(await status("/open/x", "203.0.113.7")).toBe(200);
    const refused = () => gate.log().find(({ status: code }) => code === 403);
    await until(() => refused() !== undefined);
    expect(refused()).toMatchObject({ reason: "network_denied", auth: "denied", route: "office" });
    const metrics = await ask({ port: gate.adminPort }, "/metrics");
    expect(metrics.body).toContain(
      'sallyport_auth_decisions_total{result="denied",reason="network_denied"} 5',
    );
  });

  it("closes open WebSockets that a reload no longer allows", async () => {
    await using sockets = await startWebSocketBackend();
    await using gate = await startSallyport({
      target: sockets.url,
      config: { routes: [{ name: "all", path: "/", deny: ["192.0.2.1"], upstream: "app" }] },
    });
    using socket = await openWebSocket(gate, "/ws", { authorization: `Bearer ${gate.token}` });
    const file = join(gate.directory, "config.yaml");
    await writeFile(file, (await readFile(file, "utf8")).replace("192.0.2.1", "127.0.0.0/8"));
    expect(await socket.closed).toBe(1008);
  });
});

describe("the timeouts of a route", () => {
  let gate: Sallyport;
  beforeAll(async () => {
    const upstream = (response: string) => ({ targets: [backend.url], timeouts: { response } });
    gate = await start({
      upstreams: { patient: upstream("30s"), hasty: upstream("200ms") },
      routes: [
        { name: "quick", path: "/quick", timeouts: { response: "200ms" }, upstream: "patient" },
        { name: "long", path: "/long", timeouts: { response: "30s" }, upstream: "hasty" },
        { name: "all", path: "/", upstream: "patient" },
      ],
    });
  });
  afterAll(() => gate.close());

  it("override those of its upstream", async () => {
    const { token } = gate;
    expect((await ask(gate, "/quick/slow?ms=5000", { token })).status).toBe(504);
    expect((await ask(gate, "/slow?ms=400", { token })).status).toBe(200);
  });

  it("may be longer than those of its upstream", async () => {
    expect((await ask(gate, "/long/slow?ms=400", { token: gate.token })).status).toBe(200);
  });
});

describe("a limit on requests in flight", () => {
  let holding: HoldingBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    holding = await startHoldingBackend();
    const few = (by: string, requests: number) => ({
      name: by,
      path: `/${by}`,
      concurrency: { requests, by },
      upstream: "app",
    });
    const one = { name: "one", path: "/one", concurrency: { requests: 1 }, upstream: "app" };
    const watched = { ...one, name: "watched", path: "/watched", mode: "monitor" };
    const all = { name: "all", path: "/", upstream: "app" };
    gate = await startSallyport({
      target: holding.url,
      config: {
        server: { tls: "off" },
        routes: [few("route", 2), few("subject", 2), few("client", 2), one, watched, all],
      },
    });
  });
  afterAll(async () => {
    await gate.close();
    await holding[Symbol.asyncDispose]();
  });

  it.each(["route", "subject", "client"])(
    "by %s refuses excess requests until one ends",
    async (by) => {
      const { token } = gate;
      const held = [`/${by}/hold/1`, `/${by}/hold/2`];
      const running = held.map((path) => ask(gate, path, { token }));
      await until(() => held.every((path) => holding.held().includes(path)));
      const refused = await ask(gate, `/${by}/x`, { token });
      expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"]);
      await logLine(gate, { reason: "concurrency_limited", route: by });
      expect((await ask(gate, "/x", { token })).status).toBe(200);
      for (const path of held) holding.release(path);
      expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
      expect((await ask(gate, `/${by}/x`, { token })).status).toBe(200);
    },
  );

  it("refuses nothing in monitor mode, and counts the requests it would refuse", async () => {
    const { token } = gate;
    const series =
      'sallyport_auth_decisions_total{result="would_deny",reason="concurrency_limited"}';
    const before = (await scrape(gate)).value(series) ?? 0;
    const running = ask(gate, "/watched/hold/1", { token });
    await until(() => holding.held().includes("/watched/hold/1"));
    expect((await ask(gate, "/watched/x", { token })).status).toBe(200);
    await logLine(gate, { auth: "would_deny", reason: "concurrency_limited", route: "watched" });
    expect((await scrape(gate)).value(series)).toBe(before + 1);
    holding.release("/watched/hold/1");
    expect((await running).status).toBe(200);
    expect((await ask(gate, "/watched/y", { token })).status).toBe(200);
    await logLine(gate, { auth: "allowed", path: "/watched/y" });
  });

  it("is freed when a client disconnects", async () => {
    const { token } = gate;
    const socket = await openSocket(gate);
    socket.write(
      request(["GET /one/hold/1 HTTP/1.1", "Host: a", `Authorization: Bearer ${token}`]),
    );
    await until(() => holding.held().includes("/one/hold/1"));
    expect((await ask(gate, "/one/x", { token })).status).toBe(429);
    socket.destroy();
    await until(async () => (await ask(gate, "/one/x", { token })).status === 200);
  });
});
