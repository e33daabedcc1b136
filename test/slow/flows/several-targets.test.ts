import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { listening } from "../../support/listening.ts";
import { logLine } from "../../support/log-line.ts";
import { type RawScript, startRawBackend } from "../../support/raw-backend.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** Starts a backend that answers with its name. A test changes its behaviour through the returned state. */
async function named(name: string) {
  const held: (() => void)[] = [];
  const state = { status: 200, health: 200, holds: false, served: 0 };
  const server = createServer((request, response) => {
    if (request.url === "/healthz") {
      response.writeHead(state.health).end();
      return;
    }
    state.served += 1;
    request.resume();
    const answer = (): void => void response.writeHead(state.status).end(name);
    if (state.holds) held.push(answer);
    else answer();
  });
  const { url } = stack.use(await listening(server));
  return Object.assign(state, { name, url, release: () => held.forEach((answer) => answer()) });
}

/** Returns an address where nothing listens. */
async function closedTarget(): Promise<string> {
  const { url, [Symbol.asyncDispose]: close } = await listening(createServer());
  await close();
  return url;
}

/** What a test adds to the shared instance: an upstream and a route of its own. */
interface Scenario {
  readonly upstream: object;
  readonly route?: object;
}

let gate: Sallyport;
const scenarios: ((name: string) => Promise<[string, Scenario]>)[] = [];

/** Registers a scenario to set up before Sallyport starts. @returns a getter for it, with functions to send requests. */
function scenario<Made extends object>(make: () => Promise<Made & Scenario>) {
  let made: (Made & { readonly name: string }) | undefined;
  const own = `s${scenarios.length}`;
  scenarios.push(async (name) => {
    const all = await make();
    made = { ...all, name };
    return [name, all];
  });
  const tell = (method = "GET") =>
    ask({ port: gate.port }, `/${own}/x`, {
      token: gate.token,
      method,
      ...(method === "POST" ? { body: "a=1" } : {}),
    });
  const counted = async (requests: number): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (let i = 0; i < requests; i += 1) {
      const { status, body } = await tell();
      const key = status === 200 ? body : String(status);
      counts[key] = (counts[key] ?? 0) + 1;
    }
    return counts;
  };
  return () => {
    if (made === undefined) throw new Error("only inside a test");
    return { ...made, tell, counted };
  };
}

/** A scenario with two backends, `one` and `two`. */
const pair = (settings: object = {}, route: object = {}) =>
  scenario(async () => {
    const [one, two] = [await named("one"), await named("two")];
    return { one, two, upstream: { targets: [one.url, two.url], ...settings }, route };
  });

beforeAll(async () => {
  const made = await Promise.all(scenarios.map((make, index) => make(`s${index}`)));
  const routes = made.map(([name, { route }]) => ({
    name,
    path: `/${name}/`,
    upstream: name,
    ...route,
  }));
  const upstreams = Object.fromEntries(made.map(([name, { upstream }]) => [name, upstream]));
  const app = { targets: ["http://127.0.0.1:9"] };
  const config = {
    server: { tls: "off" },
    upstreams: { app, ...upstreams },
    routes: [...routes, { name: "rest", path: "/", upstream: "app" }],
  };
  gate = stack.use(await startSallyport({ target: "http://127.0.0.1:9", config }));
});

const reset: RawScript = () => ({ write: "", then: "reset" });

/** A scenario with a scripted backend `odd` and an ordinary one, `one`. */
const pairedWith = (script: RawScript, settings: object = {}) =>
  scenario(async () => {
    const odd = stack.use(await startRawBackend(script));
    const one = await named("one");
    return { odd, one, upstream: { targets: [odd.url, one.url], ...settings } };
  });

describe("one of several targets", () => {
  const absent = scenario(async () => {
    const targets = [await closedTarget(), (await named("one")).url, (await named("two")).url];
    return { upstream: { targets } };
  });
  it("that is down fails no request, POST included", async () => {
    const { name, tell } = absent();
    for (let i = 0; i < 15; i += 1) {
      expect((await tell(i % 2 === 0 ? "GET" : "POST")).status).toBe(200);
    }
    await logLine(gate, { msg: "a target is left out", upstream: name, why: "connect_refused" });
    const { body } = await ask({ port: gate.adminPort }, "/metrics");
    expect(body).toContain(`sallyport_upstream_targets_left_out{upstream="${name}"} 1`);
    expect(body).toContain(`sallyport_upstream_targets_left_out_total{upstream="${name}"} 1`);
    expect(body).toContain(`sallyport_upstream_retries_total{upstream="${name}"} 1`);
  });

  const threeFailures = { ejection: { failures: 3 } };
  const breaking = [pairedWith(reset, threeFailures), pairedWith(reset, threeFailures)] as const;
  it("that breaks every request is ejected, and fails only those that may not be repeated", async () => {
    const [underPosts, underGets] = breaking;
    const { odd, tell } = underPosts();
    const statuses = [];
    for (let i = 0; i < 12; i += 1) statuses.push((await tell("POST")).status);
    // The backend may have executed the request, so it may not be sent again.
    expect(statuses.filter((status) => status !== 200)).toEqual([502, 502, 502]);
    expect(odd.seen()).toHaveLength(3);
    expect(await underGets().counted(12)).toEqual({ one: 12 });
    expect(underGets().odd.seen()).toHaveLength(3);
  });

  const once = (fault: ReturnType<RawScript>): RawScript => {
    let isFirst = true;
    return () => {
      const wasFirst = isFirst;
      isFirst = false;
      return wasFirst ? fault : { write: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nodd" };
    };
  };
  const limit = { timeouts: { response: "300ms" } };
  it.each([
    ["does not answer", 504, pairedWith(once("hang"), limit)],
    ["breaks", 502, pairedWith(once({ write: "", then: "reset" }))],
  ] as const)("that %s one request at a quiet hour stays in use", async (_, status, of) => {
    const { tell } = of();
    const answers = [];
    for (let i = 0; i < 8; i += 1) answers.push(await tell("POST"));
    const failed = answers.filter((answer) => answer.status !== 200);
    expect(failed.map((answer) => answer.status)).toEqual([status]);
    expect(answers.filter(({ body }) => body === "odd")).toHaveLength(3);
  });

  const stillDead = pairedWith(reset, { ejection: { failures: 1, for: "100ms" } });
  it("that is still down after its ejection fails no further request", async () => {
    const { odd, tell } = stillDead();
    const statuses = { GET: [] as number[], POST: [] as number[] };
    await until(async () => {
      for (const method of ["POST", "GET"] as const) {
        statuses[method].push((await tell(method)).status);
      }
      return odd.seen().length >= 4;
    });
    expect(statuses.GET.filter((status) => status !== 200)).toEqual([]);
    expect(statuses.POST.filter((status) => status !== 200)).toEqual([502]);
    expect(odd.seen().filter((line) => line.startsWith("POST"))).toHaveLength(1);
  });

  const ejection = { failures: 1, for: "300ms" };
  const slowly = pair({ slowStart: "10m", ejection });
  const atOnce = pair({ slowStart: "1ms", ejection });
  it.each([
    ["10m", slowly, [1, 8]],
    ["1ms", atOnce, [18, 26]],
  ] as const)(
    "that comes back gets its share of requests according to slowStart: %s",
    async (_, of, share) => {
      const { name, one, tell, counted } = of();
      one.status = 500;
      await until(async () => (await tell()).status === 500);
      one.status = 200;
      await logLine(gate, { msg: "a target is used again", upstream: name });
      await until(async () => (await tell()).body === "one");
      // A tenth of the other's weight, since the ten minutes have only just begun.
      const { one: served = 0 } = await counted(44);
      expect(served).toBeGreaterThanOrEqual(share[0]);
      expect(served).toBeLessThanOrEqual(share[1]);
    },
  );

  const hanging = pairedWith(() => "hang", { ...limit, ejection: { failures: 2 } });
  it("that hangs causes as many timeouts as ejection.failures says", async () => {
    expect(await hanging().counted(10)).toEqual({ one: 8, 504: 2 });
  });

  const failing = pair({ ejection: { failures: 3, for: "1500ms" } });
  it("that keeps answering with 500 is ejected, and comes back", async () => {
    const { one, tell, counted } = failing();
    one.status = 500;
    expect(await counted(20)).toEqual({ 500: 3, two: 17 });
    one.status = 200;
    await until(async () => (await tell()).body === "one");
  });

  const both = pair({ ejection: { failures: 1 } });
  it("is still used when it is the last one", async () => {
    const { one, two, counted } = both();
    [one.status, two.status] = [500, 500];
    expect(await counted(6)).toEqual({ 500: 6 });
    const back = one.served > two.served ? one : two;
    back.status = 200;
    expect(await counted(4)).toEqual({ [back.name]: 4 });
  });
});

describe("health checks", () => {
  const health = { path: "/healthz", interval: "100ms", unhealthy: 2, healthy: 2 };

  const checked = pair({ health });
  it("take a target out of use and bring it back", async () => {
    const { name, one, counted } = checked();
    one.health = 503;
    const left = { msg: "a target is left out", upstream: name, why: "health check: 503" };
    await logLine(gate, left);
    expect(await counted(6)).toEqual({ two: 6 });
    one.health = 200;
    await logLine(gate, { msg: "a target is used again", upstream: name });
    expect(await counted(6)).toEqual({ one: 3, two: 3 });
  });

  const sick = pair({ health });
  it("that all fail leave every target in use", async () => {
    const { name, one, two, counted } = sick();
    [one.health, two.health] = [503, 503];
    await until(async () => {
      const { body } = await ask({ port: gate.adminPort }, "/metrics");
      return body.includes(`sallyport_upstream_targets_left_out{upstream="${name}"} 2`);
    });
    expect(await counted(4)).toEqual({ one: 2, two: 2 });
  });
});

describe("the choice of a target", () => {
  const weighted = scenario(async () => {
    const [one, two] = [await named("one"), await named("two")];
    return { upstream: { targets: [{ url: one.url, weight: 3 }, two.url] } };
  });
  it("follows the weights", async () => {
    expect(await weighted().counted(12)).toEqual({ one: 9, two: 3 });
  });

  const first = pair({ balance: "first" });
  it("first: the others are only standbys", async () => {
    expect(await first().counted(6)).toEqual({ one: 6 });
  });

  const hashed = scenario(async () => {
    const targets = [await named("a"), await named("b"), await named("c")].map(({ url }) => url);
    return { upstream: { targets, balance: "clientHash" } };
  });
  it("clientHash: a client stays with one target", async () => {
    expect(Object.values(await hashed().counted(9))).toEqual([9]);
  });

  it.each([
    ["leastRequests", pair({ balance: "leastRequests" })],
    ["random2", pair({ balance: "random2" })],
  ])("%s: a busy target gets fewer requests", async (_, of) => {
    const { one: slow, tell, counted } = of();
    slow.holds = true;
    const busy = Array.from({ length: 6 }, () => tell());
    await until(() => slow.served > 0);
    expect(await counted(8)).toEqual({ two: 8 });
    slow.release();
    expect((await Promise.all(busy)).map(({ status }) => status)).toEqual(Array(6).fill(200));
  });
});

describe("a retry", () => {
  const idempotent = pair({ balance: "first" }, { retry: { on: ["503"] } });
  it("on 503 goes to another target, only for idempotent methods", async () => {
    const { one, tell } = idempotent();
    one.status = 503;
    expect((await tell()).body).toBe("two");
    expect((await tell("POST")).status).toBe(503);
  });

  const many = { ejection: { failures: 1000 } };
  const budgeted = pair(many, { retry: { attempts: 3, on: ["503"] } });
  it("is limited by a budget", async () => {
    const { one, two, counted } = budgeted();
    [one.status, two.status] = [503, 503];
    expect(await counted(40)).toEqual({ 503: 40 });
    // 10 initially, plus a fifth of 40 requests.
    expect(one.served + two.served).toBeLessThanOrEqual(40 + 10 + 8);
    expect(one.served + two.served).toBeGreaterThanOrEqual(40 + 10);
  });

  const unretried = scenario(async () => ({
    upstream: { targets: [await closedTarget(), (await named("one")).url], ...many },
    route: { retry: { attempts: 0 } },
  }));
  it("does not happen with attempts: 0", async () => {
    expect((await unretried().counted(1))["502"]).toBe(1);
  });
});

it("the admin port shows the state of each target, across all threads", async () => {
  const [one, two] = [await named("one"), await named("two")];
  two.health = 500;
  await using gate = await startSallyport({
    withoutToken: true,
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
  });
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
