import { afterEach, describe, expect, test } from "vitest";
import type { AdminPage } from "../../src/core/admin-page.ts";
import type { Log } from "../../src/core/log.ts";
import { createResponseIds } from "../../src/lib/http/response-ids.ts";
import { createNetworks } from "../../src/lib/http/networks.ts";
import { type Admin, type AdminOptions, startAdmin } from "../../src/server/admin/admin-server.ts";
import { metricsPage, probePages, type ProbeSources } from "../../src/server/admin/state-pages.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };
const started: Admin[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((admin) => admin.close()));
});

interface Changes extends Partial<AdminOptions> {
  readonly metricsText?: () => Promise<string>;
  readonly ready?: ProbeSources["checks"];
  readonly begun?: () => boolean;
}

async function admin(changes: Changes = {}): Promise<Admin> {
  const {
    metricsText = () => Promise.resolve("up 1\n"),
    ready = () => [{ name: "listener", passed: true, state: "ok" }],
    begun = () => true,
    pages = [],
    ...rest
  } = changes;
  const one = await startAdmin({
    host: "127.0.0.1",
    port: 0,
    pages: [
      metricsPage(metricsText, "text/plain; version=0.0.4; charset=utf-8"),
      ...probePages({
        livenessFailures: () => [],
        started: begun,
        checks: ready,
        dependencies: async () => [],
      }),
      ...pages,
    ],
    allow: createNetworks(["127.0.0.0/8", "::1"]),
    log: silent,
    nextId: createResponseIds(0),
    ...rest,
  });
  started.push(one);
  return one;
}

function ask(peer: Admin, line: string, headers: string[] = []) {
  const head = line.startsWith("HEAD");
  return exchange(peer, request([`${line} HTTP/1.1`, "Host: localhost", ...headers]), { head });
}

test("metrics have their content type", async () => {
  const { last } = await ask(await admin(), "GET /metrics");
  expect([last.status, last.body]).toEqual([200, "up 1\n"]);
  expect(last.header("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(last.header("connection")).not.toBe("close");
});

test("HEAD gets no body", async () => {
  const { last, raw } = await ask(await admin(), "HEAD /metrics");
  expect([last.status, last.header("content-length")]).toEqual([200, "5"]);
  expect(raw.endsWith("\r\n\r\n")).toBe(true);
});

test("concurrent scrapes are one scrape", async () => {
  let scrapes = 0;
  const gate = Promise.withResolvers<string>();
  const peer = await admin({
    metricsText: () => {
      scrapes++;
      return gate.promise;
    },
  });
  const asked = Array.from({ length: 5 }, () => ask(peer, "GET /metrics"));
  await until(() => scrapes > 0);
  // Answered on a later connection, so all five have been read by then.
  await ask(peer, "GET /livez");
  gate.resolve("up 1\n");
  const bodies = (await Promise.all(asked)).map(({ last }) => last.body);
  expect(bodies).toEqual(Array.from({ length: 5 }, () => "up 1\n"));
  expect(scrapes).toBe(1);
});

test("successive scrapes by neighbours are all answered", async () => {
  let scrapes = 0;
  const metricsText = async (): Promise<string> => `scrapes ${(scrapes += 1)}\n`;
  const one = await admin({ allow: createNetworks(["10.0.0.0/8"]), metricsText });
  for (let round = 0; round < 3; round += 1) {
    const { last } = await ask(one, "GET /metrics");
    expect([last.status, last.body]).toEqual([200, "scrapes 1\n"]);
  }
});

test("metrics that fail are a 500, and the listener keeps running", async () => {
  const peer = await admin({ metricsText: () => Promise.reject(new Error("no")) });
  expect((await ask(peer, "GET /metrics")).last.status).toBe(500);
  expect((await ask(peer, "GET /livez")).last.status).toBe(200);
});

test("readiness follows its checks, and liveness always succeeds", async () => {
  let ready = true;
  const peer = await admin({
    ready: () => [{ name: "drain", passed: ready, state: ready ? "ok" : "draining" }],
  });
  expect((await ask(peer, "GET /readyz")).last.status).toBe(200);
  ready = false;
  expect((await ask(peer, "GET /readyz")).last.status).toBe(503);
  expect((await ask(peer, "GET /livez")).last.status).toBe(200);
});

test("?verbose lists the checks", async () => {
  const peer = await admin();
  expect((await ask(peer, "GET /readyz?verbose")).last.body).toContain("listener: ok\n");
  expect((await ask(peer, "GET /readyz")).last.body).not.toContain("listener");
});

test("?exclude skips only the named check", async () => {
  const peer = await admin({
    ready: () => [
      { name: "upstreams", passed: false, state: "app ECONNREFUSED" },
      { name: "draining", passed: true, state: "no" },
    ],
  });
  expect((await ask(peer, "GET /readyz")).last.status).toBe(503);
  expect((await ask(peer, "GET /readyz?exclude=draining")).last.status).toBe(503);
  const { last } = await ask(peer, "GET /readyz?verbose&exclude=upstreams");
  expect([last.status, last.body]).toEqual([200, "ready\nupstreams: excluded\ndraining: no\n"]);
});

test("an unknown check is reported, and changes nothing", async () => {
  const peer = await admin();
  const { last } = await ask(peer, "GET /readyz?exclude=nope&exclude=listener");
  expect([last.status, last.body]).toEqual([
    200,
    'ready\nwarn: some health checks cannot be excluded: no matches for "nope"; there is "listener"\n',
  ]);
});

test("startup succeeds once everything has started", async () => {
  let begun = false;
  const peer = await admin({ begun: () => begun });
  const before = (await ask(peer, "GET /startupz?verbose")).last;
  expect([before.status, before.body]).toEqual([503, "starting\nstarted: no\n"]);
  begun = true;
  expect((await ask(peer, "GET /startupz")).last.status).toBe(200);
});

test("a check that throws is a 500, not a crash", async () => {
  const peer = await admin({
    ready: () => {
      throw new Error("no");
    },
  });
  expect((await ask(peer, "GET /readyz")).last.status).toBe(500);
});

test("anything else is a 404 in JSON", async () => {
  const peer = await admin();
  for (const line of ["GET /metrics/", "POST /api/authenticate", "GET http://[/metrics"]) {
    const { last } = await ask(peer, line);
    expect([line, last.status]).toEqual([line, 404]);
    expect(JSON.parse(last.body)).toMatchObject({ id: expect.any(Number), success: false });
  }
});

test("/ lists the pages", async () => {
  const { last } = await ask(await admin(), "GET /");
  expect([last.status, last.header("content-type")]).toEqual([200, "application/json"]);
  const { pages, ...rest }: { pages: object[] } = JSON.parse(last.body);
  expect(rest).toEqual({ id: expect.any(Number), message: expect.any(String), success: true });
  expect(pages).toContainEqual({ method: "GET", path: "/metrics", audience: "everybody" });
});

test.each([
  ["GET /nothing", 404],
  ["POST /livez", 405],
  ["GET /livez\r\nExpect: gold", 417],
  ["GET /livez HTTP/9.9\r\n\r\n", 400],
])("%j is refused with the envelope and a unique id", async (line, status) => {
  const peer = await admin();
  const bytes = line.includes("Expect")
    ? line.replace("\r\n", " HTTP/1.1\r\nHost: localhost\r\n") + "\r\n\r\n"
    : request([`${line} HTTP/1.1`, "Host: localhost"]);
  const answers = await Promise.all([exchange(peer, bytes), exchange(peer, bytes)]);
  const envelopes = answers.map(({ last }): { id: number } => {
    expect(last.status).toBe(status);
    return JSON.parse(last.body);
  });
  expect(new Set(envelopes.map(({ id }) => id)).size).toBe(2);
  for (const envelope of envelopes) {
    expect(envelope).toMatchObject({ id: expect.any(Number), message: expect.any(String) });
    expect(envelope).toMatchObject({ success: false });
  }
});

test("another method is a 405 that names the allowed ones, without waiting for the body", async () => {
  const { last, ended } = await ask(await admin(), "POST /metrics", ["Content-Length: 100"]);
  expect([last.status, last.header("allow")]).toEqual([405, "GET, HEAD"]);
  expect(last.header("connection")).toBe("close");
  expect(ended).toBe("complete");
});

test.each([
  ["garbage", "nonsense\r\n\r\n", 400],
  ["a bare line feed in a header", "GET /livez HTTP/1.1\r\nHost: a\r\nX: a\nb\r\n\r\n", 400],
  ["an endless header", `GET /livez HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(70_000)}\r\n\r\n`, 431],
])(
  "%s is refused, the connection is closed, and the listener keeps running",
  async (_, bytes, status) => {
    const peer = await admin();
    const { last, ended } = await exchange(peer, bytes, { responses: Infinity });
    expect([last.status, ended]).toEqual([status, "closed"]);
    expect((await ask(peer, "GET /livez")).last.status).toBe(200);
  },
);

test("an upgrade and an unknown expectation are answered", async () => {
  const peer = await admin();
  const upgrade = await ask(peer, "GET /livez", ["Connection: upgrade", "Upgrade: websocket"]);
  expect(upgrade.last.status).toBe(200);
  expect((await ask(peer, "GET /livez", ["Expect: gold"])).last.status).toBe(417);
});

describe("a restricted page", () => {
  let asked = 0;
  const secret = { path: "/-/secret", audience: "allowed" } as const;
  const pages: AdminPage[] = [
    {
      ...secret,
      method: "POST",
      answer: () => ({ status: 202, type: "text/plain", body: String(++asked) }),
    },
    {
      ...secret,
      method: "GET",
      answer: ({ query }) => ({ status: 200, type: "text/plain", body: query.get("a") ?? "" }),
    },
  ];

  test("answers allowed peers, with a page per method", async () => {
    const peer = await admin({ pages });
    expect((await ask(peer, "GET /-/secret?a=b%20c")).last.body).toBe("b c");
    expect((await ask(peer, "POST /-/secret")).last).toMatchObject({ status: 202 });
    const { last } = await ask(peer, "DELETE /-/secret");
    expect([last.status, last.header("allow")]).toEqual([405, "POST, GET, HEAD"]);
  });

  test("answers no other peers, whatever their headers claim", async () => {
    const peer = await admin({ pages, allow: createNetworks(["10.0.0.0/8"]) });
    const before = asked;
    for (const line of ["GET /-/secret?a=b", "POST /-/secret", "DELETE /-/secret"]) {
      const headers = ["X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1"];
      expect((await ask(peer, line, headers)).last.status).toBe(403);
    }
    expect(asked).toBe(before);
    expect((await ask(peer, "GET /livez")).last.status).toBe(200);
  });
});

test("an address in use is an error", async () => {
  const { port } = await admin();
  await expect(admin({ port })).rejects.toMatchObject({ code: "EADDRINUSE" });
});

test("close ends idle and silent connections", async () => {
  const peer = await admin();
  const socket = await openSocket(peer);
  const closed = Promise.withResolvers<void>();
  socket.on("close", () => closed.resolve());
  socket.resume();
  await peer.close();
  await closed.promise;
  await expect(openSocket(peer)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
