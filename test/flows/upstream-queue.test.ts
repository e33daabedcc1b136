import { afterAll, beforeAll, expect, it } from "vitest";
import { type Answer, ask, fieldsOf } from "../support/ask.ts";
import { startHoldingBackend, type HoldingBackend } from "../support/holding-backend.ts";
import { logLine } from "../support/log-line.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const NAMES = ["queued", "impatient", "no-queue", "shared"];

let backend: HoldingBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startHoldingBackend();
  const one = { targets: [backend.url], connections: 1 };
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: {
      server: { trustedProxies: ["127.0.0.1/32"] },
      routes: NAMES.map((name) => ({ name, path: `/${name}/`, auth: "none", upstream: name })),
      upstreams: {
        queued: { ...one, queue: { length: 2, timeout: "30s" } },
        impatient: { ...one, queue: { length: 5, timeout: "150ms" } },
        "no-queue": { ...one, queue: { length: 0 } },
        shared: { ...one, connections: 2, queue: { length: 2, timeout: "30s" } },
      },
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend[Symbol.asyncDispose]();
});

const rejected = async (): Promise<number> =>
  (await scrape(gate)).value('sallyport_requests_rejected_total{reason="upstream_busy"}') ?? -1;

const untilLoad = (upstream: string, inFlight: number, waiting: number): Promise<void> =>
  until(async () => {
    const { value } = await scrape(gate);
    return (
      value(`sallyport_upstream_requests_in_flight{upstream="${upstream}"}`) === inFlight &&
      value(`sallyport_upstream_queue_length{upstream="${upstream}"}`) === waiting
    );
  });

it("queues requests in order of arrival; excess requests get 503", async () => {
  const first = ask(gate, "/queued/hold/1");
  await untilLoad("queued", 1, 0);
  const second = ask(gate, "/queued/hold/2", { method: "POST", body: "x".repeat(600) });
  await untilLoad("queued", 1, 1);
  const third = ask(gate, "/queued/hold/3");
  await untilLoad("queued", 1, 2);
  const before = await rejected();
  const fourth = await ask(gate, "/queued/hold/4");
  expect(fourth.status).toBe(503);
  expect(fourth.headers["retry-after"]).toBe("1");
  expect(fourth.headers["proxy-status"]).toBe("sallyport; error=connection_limit_reached");
  expect(await rejected()).toBe(before + 1);
  expect(await logLine(gate, { id: fieldsOf(fourth)["id"] })).toMatchObject({
    reason: "upstream_busy",
  });
  for (const [path, answer] of [
    ["/queued/hold/1", first],
    ["/queued/hold/2", second],
    ["/queued/hold/3", third],
  ] as const) {
    await until(() => backend.held().length === 1);
    expect(backend.held()).toEqual([path]);
    backend.release(path);
    expect((await answer).status).toBe(200);
  }
  await untilLoad("queued", 0, 0);
});

it("drops the request of a client that disconnects, and never forwards it", async () => {
  const first = ask(gate, "/queued/hold/a");
  await until(() => backend.held().length === 1);
  const leaving = await openSocket(gate);
  leaving.write(request(["GET /queued/hold/gone HTTP/1.1", "Host: localhost"]));
  await untilLoad("queued", 1, 1);
  const last = ask(gate, "/queued/hold/b");
  await untilLoad("queued", 1, 2);
  leaving.destroy();
  await untilLoad("queued", 1, 1);
  expect(await logLine(gate, { path: "/queued/hold/gone" })).toMatchObject({ status: 499 });
  backend.release("/queued/hold/a");
  expect((await first).status).toBe(200);
  await until(() => backend.held().length === 1);
  expect(backend.held()).toEqual(["/queued/hold/b"]);
  backend.release("/queued/hold/b");
  expect((await last).status).toBe(200);
  await untilLoad("queued", 0, 0);
});

it("refuses requests that wait longer than the timeout", async () => {
  const first = ask(gate, "/impatient/hold/1");
  await until(() => backend.held().length === 1);
  const late = await ask(gate, "/impatient/hold/2");
  expect(late.status).toBe(503);
  expect(await logLine(gate, { id: fieldsOf(late)["id"] })).toMatchObject({
    reason: "upstream_queue_timeout",
  });
  await untilLoad("impatient", 1, 0);
  backend.release("/impatient/hold/1");
  expect((await first).status).toBe(200);
  await untilLoad("impatient", 0, 0);
});

it("may be off", async () => {
  const first = ask(gate, "/no-queue/hold/1");
  await until(() => backend.held().length === 1);
  expect((await ask(gate, "/no-queue/hold/2")).status).toBe(503);
  backend.release("/no-queue/hold/1");
  expect((await first).status).toBe(200);
});

it("gives connections and queue places to the client with fewer, and treats a /64 as one client", async () => {
  const from = (client: string, path: string): Promise<Answer> =>
    ask(gate, `/shared/hold/${path}`, { headers: { "x-forwarded-for": client } });
  const greedy = [1, 2, 3, 4].map((host) => [`2001:db8::${host}`, `a${host}`] as const);
  const asked: Promise<Answer>[] = [];
  for (const [index, [client, path]] of greedy.entries()) {
    asked.push(from(client, path));
    await untilLoad("shared", Math.min(index + 1, 2), Math.max(index - 1, 0));
  }
  const other = from("2001:db8:0:1::1", "b");
  const displaced = await asked[3];
  expect(displaced?.status).toBe(503);
  expect(await logLine(gate, { path: "/shared/hold/a4" })).toMatchObject({
    client: "2001:db8::4",
    reason: "upstream_busy",
  });
  expect((await from("2001:db8::5", "a5")).status).toBe(503);
  await until(() => backend.held().length === 2);
  backend.release("/shared/hold/a1");
  await until(() => backend.held().includes("/shared/hold/b"));
  expect(backend.held()).toEqual(["/shared/hold/a2", "/shared/hold/b"]);
  for (const path of ["a2", "a3", "b"]) {
    await until(() => backend.held().includes(`/shared/hold/${path}`));
    backend.release(`/shared/hold/${path}`);
  }
  for (const answer of [asked[0], asked[1], asked[2], other]) {
    expect((await answer)?.status).toBe(200);
  }
  await untilLoad("shared", 0, 0);
});

it("queues upgrades, too, until a connection is free for the handshake", async () => {
  const first = ask(gate, "/queued/hold/x");
  await until(() => backend.held().length === 1);
  const upgrade = exchange(
    gate,
    request([
      ...["GET /queued/ws HTTP/1.1", "Host: localhost", "Sec-WebSocket-Version: 13"],
      ...["Connection: Upgrade", "Upgrade: websocket"],
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    ]),
  );
  await untilLoad("queued", 1, 1);
  backend.release("/queued/hold/x");
  expect((await first).status).toBe(200);
  // A backend without WebSocket support answers normally, and its response passes.
  expect((await upgrade).last).toMatchObject({ status: 200, body: "ok" });
  await untilLoad("queued", 0, 0);
});
