/** A backend that is stopped accepts connections and answers nothing: that must be seen before requests time out. */
import { createServer } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { WebSocketServer } from "ws";
import type { Status } from "../../../src/core/status.ts";
import { ask } from "../../support/ask.ts";
import { startBackendProcess } from "../../support/backend-process.ts";
import { listening } from "../../support/listening.ts";
import { logLine } from "../../support/log-line.ts";
import { scrape } from "../../support/scrape.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";
import { openWebSocket } from "../../support/websocket.ts";

async function targetOf(gate: Sallyport) {
  const { body } = await ask({ port: gate.adminPort }, "/-/status");
  const status: Status = JSON.parse(body);
  return status.upstreams[0]?.targets[0];
}

it.each([1, 2])(
  "a backend that hangs is shown with %i worker(s): metrics, status, readiness, log",
  { timeout: 60_000 },
  async (workers) => {
    await using backend = await startBackendProcess();
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        server: { workers },
        upstreams: { app: { targets: [backend.url], timeouts: { response: "20s" } } },
      },
    });
    const quick = await ask(gate, "/orders", { token: gate.token });
    expect(quick.status).toBe(200);
    const before = await targetOf(gate);
    expect(before).toMatchObject({ reachable: true, state: "ok", oldestMs: 0 });
    expect(before?.latency.p99).toBeGreaterThan(0);

    backend.stop();
    const began = performance.now();
    const pending = ask(gate, "/orders/1", { token: gate.token });
    const series = `sallyport_upstream_oldest_request_seconds{upstream="app",target="${backend.url}"}`;
    await until(async () => ((await scrape(gate)).value(series) ?? 0) >= 1);
    const admin = { port: gate.adminPort };
    const warning = `${backend.url} has not answered for 5s`;
    await until(async () => (await ask(admin, "/readyz?verbose")).body.includes(warning), 10_000);
    expect(await targetOf(gate)).toMatchObject({ reachable: true, state: "ok" });
    expect((await targetOf(gate))?.oldestMs).toBeGreaterThanOrEqual(5_000);
    expect((await ask(admin, "/-/")).body).toContain("does not answer");
    // A quarter of the response timeout.
    await logLine(gate, { msg: "a target answers nothing", upstream: "app", target: backend.url });
    expect(performance.now() - began).toBeLessThan(10_000);
    expect((await ask(admin, "/readyz")).status).toBe(200);

    backend.goOn();
    expect((await pending).status).toBe(200);
    await logLine(gate, { msg: "a target answers again", level: "info" });
    // A request is counted a moment after its answer.
    await until(async () => ((await targetOf(gate))?.latency.p99 ?? 0) > 4_000);
    expect((await targetOf(gate))?.oldestMs).toBe(0);
    expect((await ask(admin, "/readyz?verbose")).body).not.toContain("has not answered");
    const lines = gate.log().filter(({ msg }) => String(msg).startsWith("a target answers"));
    expect(lines).toHaveLength(2);
  },
);

it("a WebSocket shows that a silent backend answers again", { timeout: 60_000 }, async () => {
  // It answers no other request.
  const server = createServer(() => undefined);
  const sockets = new WebSocketServer({ server });
  await using backend = await listening(server);
  const upstreams = { app: { targets: [backend.url], timeouts: { response: "8s" } } };
  await using gate = await startSallyport({ target: backend.url, config: { upstreams } });
  const pending = ask(gate, "/orders", { token: gate.token });
  await logLine(gate, { msg: "a target answers nothing", target: backend.url });
  const opened = await openWebSocket(gate, "/chat", { authorization: `Bearer ${gate.token}` });
  opened[Symbol.dispose]();
  await logLine(gate, { msg: "a target answers again", target: backend.url });
  expect((await pending).status).toBe(504);
  sockets.close();
});

it("a backend that waits for a slow client is not said to hang", { timeout: 60_000 }, async () => {
  await using backend = await startBackendProcess();
  const upstreams = { app: { targets: [backend.url], timeouts: { response: "8s" } } };
  const server = { tls: "off", limits: { bodyBytes: "1GiB" } };
  await using gate = await startSallyport({ target: backend.url, config: { server, upstreams } });
  const head = [
    ...["POST /orders HTTP/1.1", "Host: localhost", `Authorization: Bearer ${gate.token}`],
    ...["Content-Length: 1000000000", "", ""],
  ].join("\r\n");
  const client = connect(gate.port, "127.0.0.1").resume();
  const began = performance.now();
  client.write(head);
  const drip = setInterval(() => client.write("x"), 200);
  const oldest: (number | undefined)[] = [];
  while (performance.now() - began < 6_000) {
    oldest.push((await targetOf(gate))?.oldestMs);
    await sleep(250);
  }
  clearInterval(drip);
  expect(Math.max(...oldest.map((ms) => ms ?? Infinity))).toBeLessThan(1_000);
  expect(gate.log().filter(({ msg }) => msg === "a target answers nothing")).toEqual([]);
  // One that takes no more of what the client sends is.
  backend.stop();
  const more = Buffer.alloc(1_000_000);
  const flood = setInterval(() => void (client.writableNeedDrain || client.write(more)), 10);
  await until(async () => ((await targetOf(gate))?.oldestMs ?? 0) > 1_000, 10_000);
  await logLine(gate, { msg: "a target answers nothing", target: backend.url });
  clearInterval(flood);
  client.destroy();
});
