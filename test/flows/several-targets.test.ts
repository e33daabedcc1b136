import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { listening } from "../support/listening.ts";
import { logLine } from "../support/log-line.ts";
import { type RawScript, startRawBackend } from "../support/raw-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

let stack = new AsyncDisposableStack();
afterEach(async () => {
  const used = stack;
  stack = new AsyncDisposableStack();
  await used.disposeAsync();
});

/** A backend that says its name, with what a test makes of it meanwhile. */
async function named(name: string) {
  const state = { status: 200, health: 200, delayMs: 0, served: 0, checks: 0 };
  const server = createServer((request, response) => {
    if (request.url === "/healthz") {
      state.checks += 1;
      response.writeHead(state.health).end();
      return;
    }
    state.served += 1;
    request.resume();
    const answer = (): void => void response.writeHead(state.status).end(name);
    if (state.delayMs > 0) setTimeout(answer, state.delayMs);
    else answer();
  });
  const { url } = stack.use(await listening(server));
  return Object.assign(state, { name, url });
}

/** The address of nobody. */
async function nobody(): Promise<string> {
  const { url, [Symbol.asyncDispose]: close } = await listening(createServer());
  await close();
  return url;
}

async function start(upstream: object, route: object = {}): Promise<Sallyport> {
  const config = {
    upstreams: { app: upstream },
    routes: [{ name: "all", path: "/", upstream: "app", ...route }],
  };
  return stack.use(await startSallyport({ target: "http://127.0.0.1:9", config }));
}

const tell = (gate: Sallyport, method = "GET") =>
  ask(gate, "/x", { token: gate.token, method, ...(method === "POST" ? { body: "a=1" } : {}) });

async function counted(gate: Sallyport, requests: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let i = 0; i < requests; i += 1) {
    const { status, body } = await tell(gate);
    const key = status === 200 ? body : String(status);
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

describe("a target of several", () => {
  it("that is not there costs nobody an answer, POSTs included", async () => {
    const [one, two] = [await named("one"), await named("two")];
    const gate = await start({ targets: [await nobody(), one.url, two.url] });
    for (let i = 0; i < 15; i += 1) {
      expect((await tell(gate, i % 2 === 0 ? "GET" : "POST")).status).toBe(200);
    }
    await logLine(gate, { msg: "a target is left out", upstream: "app", why: "connect_refused" });
    const { body } = await ask({ port: gate.adminPort }, "/metrics");
    expect(body).toContain('sallyport_upstream_targets_left_out{upstream="app"} 1');
    expect(body).toContain('sallyport_upstream_targets_left_out_total{upstream="app"} 1');
    expect(body).toContain('sallyport_upstream_retries_total{upstream="app"} 1');
  });

  it("that dies under way costs no request that may be repeated, and no other", async () => {
    const dying: RawScript = () => ({ write: "", then: "reset" });
    const gone = stack.use(await startRawBackend(dying));
    const one = await named("one");
    const gate = await start({ targets: [gone.url, one.url] });
    const statuses = [];
    for (let i = 0; i < 12; i += 1) statuses.push((await tell(gate, "POST")).status);
    // What was sent may have been executed: nobody may send it again.
    expect(statuses.filter((status) => status !== 200)).toEqual([502]);
    expect(gone.seen()).toHaveLength(1);
    const again = await start({ targets: [gone.url, one.url] });
    expect(await counted(again, 6)).toEqual({ one: 6 });
  });

  it("that is still dead when its time is over costs no request more", async () => {
    const gone = stack.use(await startRawBackend(() => ({ write: "", then: "reset" })));
    const one = await named("one");
    const targets = [gone.url, one.url];
    const gate = await start({ targets, ejection: { for: "300ms" } });
    const statuses = { GET: [] as number[], POST: [] as number[] };
    await until(async () => {
      for (const method of ["POST", "GET"] as const) {
        statuses[method].push((await tell(gate, method)).status);
      }
      return gone.seen().length >= 4;
    });
    expect(statuses.GET.filter((status) => status !== 200)).toEqual([]);
    expect(statuses.POST.filter((status) => status !== 200)).toEqual([502]);
    expect(gone.seen().filter((line) => line.startsWith("POST"))).toHaveLength(1);
  });

  it("that comes back gets its share little by little with slowStart", async () => {
    for (const [slowStart, share] of [
      ["10m", [1, 8]],
      ["1ms", [18, 26]],
    ] as const) {
      const [one, two] = [await named("one"), await named("two")];
      one.status = 500;
      const ejection = { failures: 1, for: "300ms" };
      const gate = await start({ targets: [one.url, two.url], slowStart, ejection });
      await until(async () => (await tell(gate)).status === 500);
      one.status = 200;
      await logLine(gate, { msg: "a target is used again" });
      await until(async () => (await tell(gate)).body === "one");
      // A tenth of the weight of the other, as long as the ten minutes have hardly begun.
      const { one: served = 0 } = await counted(gate, 44);
      expect(served).toBeGreaterThanOrEqual(share[0]);
      expect(served).toBeLessThanOrEqual(share[1]);
    }
  });

  it("that hangs costs its time-out once", async () => {
    const hanging = stack.use(await startRawBackend(() => "hang"));
    const one = await named("one");
    const gate = await start({
      targets: [hanging.url, one.url],
      timeouts: { response: "300ms" },
    });
    expect(await counted(gate, 10)).toEqual({ one: 9, 504: 1 });
  });

  it("that answers with 500 is left out after some, and comes back", async () => {
    const [one, two] = [await named("one"), await named("two")];
    one.status = 500;
    const gate = await start({
      targets: [one.url, two.url],
      ejection: { failures: 3, for: "3s" },
    });
    expect(await counted(gate, 20)).toEqual({ 500: 3, two: 17 });
    one.status = 200;
    await until(async () => (await tell(gate)).body === "one");
  });

  it("is used nonetheless when it is the last one", async () => {
    const [one, two] = [await named("one"), await named("two")];
    [one.status, two.status] = [500, 500];
    const gate = await start({ targets: [one.url, two.url], ejection: { failures: 1 } });
    expect(await counted(gate, 6)).toEqual({ 500: 6 });
    const back = one.served > two.served ? one : two;
    back.status = 200;
    expect(await counted(gate, 4)).toEqual({ [back.name]: 4 });
  });
});

describe("health checks", () => {
  const health = { path: "/healthz", interval: "100ms", unhealthy: 2, healthy: 2 };

  it("leave a target out and bring it back", async () => {
    const [one, two] = [await named("one"), await named("two")];
    one.health = 503;
    const gate = await start({ targets: [one.url, two.url], health });
    await logLine(gate, { msg: "a target is left out", why: "health check: 503" });
    expect(await counted(gate, 6)).toEqual({ two: 6 });
    one.health = 200;
    await logLine(gate, { msg: "a target is used again" });
    expect(await counted(gate, 6)).toEqual({ one: 3, two: 3 });
  });

  it("that all fail leave out none", async () => {
    const [one, two] = [await named("one"), await named("two")];
    [one.health, two.health] = [503, 503];
    const gate = await start({ targets: [one.url, two.url], health });
    await until(async () => {
      const { body } = await ask({ port: gate.adminPort }, "/metrics");
      return body.includes('sallyport_upstream_targets_left_out{upstream="app"} 2');
    });
    expect(await counted(gate, 4)).toEqual({ one: 2, two: 2 });
  });
});

describe("the choice of a target", () => {
  it("by weight", async () => {
    const [one, two] = [await named("one"), await named("two")];
    const gate = await start({ targets: [{ url: one.url, weight: 3 }, two.url] });
    expect(await counted(gate, 12)).toEqual({ one: 9, two: 3 });
  });

  it("first: the others only stand by", async () => {
    const [one, two] = [await named("one"), await named("two")];
    const gate = await start({ targets: [one.url, two.url], balance: "first" });
    expect(await counted(gate, 6)).toEqual({ one: 6 });
  });

  it("clientHash: a client stays where it is", async () => {
    const targets = [await named("a"), await named("b"), await named("c")].map(({ url }) => url);
    const gate = await start({ targets, balance: "clientHash" });
    expect(Object.values(await counted(gate, 9))).toEqual([9]);
  });

  it.each(["leastRequests", "random2"])("%s: a busy one gets less", async (balance) => {
    const [slow, quick] = [await named("slow"), await named("quick")];
    slow.delayMs = 1_500;
    const gate = await start({ targets: [slow.url, quick.url], balance });
    const busy = Array.from({ length: 6 }, () => tell(gate));
    await until(() => slow.served > 0);
    expect(await counted(gate, 8)).toEqual({ quick: 8 });
    await Promise.all(busy);
  });
});

describe("a retry", () => {
  it("on 503 goes to another target, for idempotent methods alone", async () => {
    const [one, two] = [await named("one"), await named("two")];
    one.status = 503;
    const retry = { on: ["503"] };
    const gate = await start({ targets: [one.url, two.url], balance: "first" }, { retry });
    expect((await tell(gate)).body).toBe("two");
    expect((await tell(gate, "POST")).status).toBe(503);
  });

  it("comes out of a budget", async () => {
    const [one, two] = [await named("one"), await named("two")];
    [one.status, two.status] = [503, 503];
    const gate = await start(
      { targets: [one.url, two.url], ejection: { failures: 1000 } },
      { retry: { attempts: 3, on: ["503"] } },
    );
    expect(await counted(gate, 40)).toEqual({ 503: 40 });
    // 10 at first, and a fifth of 40 requests.
    expect(one.served + two.served).toBeLessThanOrEqual(40 + 10 + 8);
    expect(one.served + two.served).toBeGreaterThanOrEqual(40 + 10);
  });

  it("does not happen with attempts: 0", async () => {
    const one = await named("one");
    const gate = await start(
      { targets: [await nobody(), one.url], ejection: { failures: 100 } },
      { retry: { attempts: 0 } },
    );
    expect((await counted(gate, 1))["502"]).toBe(1);
  });
});

it("the admin port tells the state of each target, of all threads together", async () => {
  const [one, two] = [await named("one"), await named("two")];
  two.health = 500;
  const gate = stack.use(
    await startSallyport({
      target: one.url,
      config: {
        server: { workers: 2 },
        upstreams: {
          app: {
            targets: [one.url, { url: two.url, weight: 2 }],
            health: { path: "/healthz", interval: "100ms", unhealthy: 1 },
          },
        },
      },
    }),
  );
  const admin = { port: gate.adminPort };
  await until(async () => {
    const { body } = await ask(admin, "/-/upstreams");
    return body.includes('"unhealthy"');
  });
  const { targets } = JSON.parse((await ask(admin, "/-/upstreams")).body);
  expect(targets).toEqual([
    expect.objectContaining({ upstream: "app", target: one.url, state: "available", weight: 1 }),
    expect.objectContaining({ upstream: "app", target: two.url, state: "unhealthy", weight: 2 }),
  ]);
  expect((await ask(admin, "/readyz?verbose")).body).toContain("app 1 of 2");
});
