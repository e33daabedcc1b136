import { once } from "node:events";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { chunked, exchange, openSocket, request } from "../support/raw-client.ts";
import * as h2 from "../support/raw-http2-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { until } from "../support/until.ts";

const { ca } = await testCertificates();
const part = useSharedSallyport({
  withoutToken: true,
  files: { "ca.crt": ca },
  config: { server: { http2: true } },
});

/** Adds a backend, which everyone reaches without a token. */
function behind<Backend extends AsyncDisposable & { readonly url: string }>(
  start: () => Promise<Backend>,
  upstream: object = { protocol: "h2c" },
  route: object = {},
) {
  return part(async (stack) => {
    const backend = stack.use(await start());
    return {
      backend,
      upstream: { targets: [backend.url], ...upstream },
      route: { auth: "none", ...route },
    };
  });
}

const plain = behind(() =>
  startHttp2Backend(async (request) => {
    const body = await request.body();
    request.stream.respond({
      ":status": 201,
      "content-type": "text/plain",
      "set-cookie": ["a=1", "b=2"],
    });
    request.stream.end(`${request.headers[":method"]} ${body.length}`);
  }),
);
test("HTTP/1.1 clients reach an h2c backend over one connection", async () => {
  const { backend, gate, path } = plain();
  const answers = [
    await ask(gate, path("/a?b=c")),
    await ask(gate, path("/post"), { method: "POST", body: "four" }),
    await ask(gate, path("/large"), { method: "PUT", body: "x".repeat(300_000) }),
    await ask(gate, path("/head"), { method: "HEAD" }),
  ];
  expect(answers.map(({ status, body }) => [status, body])).toEqual([
    [201, "GET 0"],
    [201, "POST 4"],
    [201, "PUT 300000"],
    [201, ""],
  ]);
  expect(answers[0]?.headers["set-cookie"]).toEqual(["a=1", "b=2"]);
  expect(backend.sessions).toHaveLength(1);
  const [first, second] = backend.requests;
  expect(first?.headers).toMatchObject({
    ":method": "GET",
    ":path": path("/a?b=c"),
    ":scheme": "http",
    ":authority": `127.0.0.1:${gate.port}`,
    "x-forwarded-proto": "https",
  });
  expect(first?.headers).not.toHaveProperty("host");
  expect(first?.headers).not.toHaveProperty("connection");
  expect(second?.headers["content-length"]).toBe("4");
});

const echoing = behind(
  () =>
    startHttp2Backend(async ({ body, stream }) => {
      // A body that is too large is cut off.
      const content = await body().catch(() => "");
      if (stream.destroyed) return;
      stream.respond({ ":status": 200 });
      stream.end(content);
    }),
  { protocol: "h2c" },
  { limits: { bodyBytes: "1KiB" } },
);
test("a complete body without a length is sent with its length, within the limit", async () => {
  const { backend, gate, path } = echoing();
  await using client = await connectHttp2(gate);
  const post = { ":method": "POST", ":path": path("/x") };
  expect(await client.ask(post, "four")).toMatchObject({ status: 200, body: "four" });
  expect(backend.requests[0]?.headers["content-length"]).toBe("4");
  expect((await client.ask(post, "x".repeat(2_000))).status).toBe(413);
  // A body that is incomplete at the end of the turn of the event loop is streamed.
  const late = client.open(post, { endStream: false });
  late.write("half");
  await until(() => backend.requests.some(({ headers }) => !("content-length" in headers)));
  late.end("whole");
  await once(late.resume(), "close");
  expect(late.rstCode).toBe(0);
});

const tls = { protocol: "http2", tls: { caFile: "ca.crt" } };
const negotiating = behind(() => startHttp2Backend(undefined, { tls: ["h2"] }), tls);
const old = behind(() => startEchoBackend({ tls: {} }), tls);
test("TLS selects h2 with ALPN, and a backend without h2 gets 502", async () => {
  const { gate, path } = negotiating();
  expect(await ask(gate, path("/x"))).toMatchObject({ status: 200, body: `GET ${path("/x")}` });
  expect((await ask(gate, old().path("/x"))).status).toBe(502);
});

const trailing = behind(() =>
  startHttp2Backend(async (request) => {
    await request.body();
    request.stream.respond({ ":status": 200 }, { waitForTrailers: true });
    request.stream.on("wantTrailers", () =>
      request.stream.sendTrailers({
        "x-sum": "7",
        "set-cookie": "a=b",
        "x-seen": JSON.stringify(request.trailers()),
      }),
    );
    request.stream.end("body");
  }),
);
test("trailers pass in both directions, except those that a backend could take for headers", async () => {
  const { backend, gate, path } = trailing();
  const bytes = request(
    [
      `POST ${path("/x")} HTTP/1.1`,
      "Host: localhost",
      "TE: trailers",
      "Transfer-Encoding: chunked",
    ],
    chunked("body", [
      "X-Sum: 42",
      "X-Auth-Subject: root",
      "Authorization: Bearer x",
      "Cookie: a=b",
    ]),
  );
  const { last } = await exchange(gate, bytes);
  const trailers = Object.fromEntries(last.trailers);
  expect(trailers).toMatchObject({ "x-sum": "7" });
  expect(trailers).not.toHaveProperty("set-cookie");
  expect(JSON.parse(trailers["x-seen"] ?? "")).toEqual({ "x-sum": "42" });
  expect(backend.requests[0]?.headers["te"]).toBe("trailers");
});

const UNPROCESSED: [string, (stream: number, socket: Socket) => void][] = [
  ["a GOAWAY before it", (stream, socket) => void socket.end(h2.goaway(stream - 2, 0))],
  ["REFUSED_STREAM", (stream, socket) => void socket.write(h2.rst(stream, 7))],
];
const MAYBE_PROCESSED: [string, (stream: number, socket: Socket) => void][] = [
  ["a lost connection", (_stream, socket) => void socket.destroy()],
  ["a GOAWAY that includes it", (stream, socket) => void socket.end(h2.goaway(stream, 0))],
];

/**
 * Adds a backend. @returns a function that sends one request, then one with `method`, which the backend ends with
 * `ending` the first time.
 */
function endedOnce(ending: (stream: number, socket: Socket) => void) {
  let seen: number[] = [];
  const made = behind(() =>
    h2.startRawHttp2Backend(({ type, stream }, socket) => {
      if (type !== h2.HEADERS) return;
      if (seen.push(stream) === 2) ending(stream, socket);
      else socket.write(h2.answer(stream));
    }),
  );
  return async (method: string, body?: string) => {
    const { gate, path } = made();
    seen = [];
    expect((await ask(gate, path("/first"))).status).toBe(200);
    const { status } = await ask(gate, path("/second"), {
      method,
      ...(body === undefined ? {} : { body }),
    });
    return { status, requests: seen.length };
  };
}

describe.each(UNPROCESSED)("an unprocessed request: %s", (_how, ending) => {
  const send = endedOnce(ending);
  test("is sent again", async () => {
    expect(await send("GET")).toEqual({ status: 200, requests: 3 });
    expect(await send("POST", "body")).toEqual({ status: 200, requests: 3 });
  });
});

describe.each(UNPROCESSED)("an unprocessed body without a length: %s", (_how, ending) => {
  const attempts = new Map<string, Buffer[]>();
  const refused = new Set<string>();
  let isLater = false;
  let again: string[] = [];
  const made = behind(() =>
    h2.startRawHttp2Backend(({ type, flags, stream, payload }, socket) => {
      if (type === h2.HEADERS && (flags & h2.END_STREAM) !== 0) socket.write(h2.answer(stream));
      const attempt = `${socket.remotePort} ${stream}`;
      if (type !== h2.DATA || refused.has(attempt)) return;
      const parts = [...(attempts.get(attempt) ?? []), payload];
      attempts.set(attempt, parts);
      const text = String(Buffer.concat(parts));
      const isRefused = !isLater && text.endsWith("refuse me");
      if (isRefused) {
        isLater = true;
        refused.add(attempt);
        ending(stream, socket);
      } else if ((flags & h2.END_STREAM) !== 0 && isLater) {
        again.push(text);
        socket.write(h2.answer(stream));
      }
    }),
  );
  test("is sent again, up to 16 KiB of it", async () => {
    const { gate, path } = made();
    again = [];
    isLater = false;
    await using client = await connectHttp2(gate);
    // So that a GOAWAY has a stream before it.
    expect((await client.ask({ ":path": path("/first") })).status).toBe(200);
    const headers = {
      ":method": "POST",
      ":path": path("/call"),
      te: "trailers",
      "content-type": "application/grpc",
    };
    expect((await client.ask(headers, "refuse me")).status).toBe(200);
    expect(again).toEqual(["refuse me"]);
    isLater = false;
    const stream = client.open(headers, { endStream: false });
    const answered = once(stream, "response");
    stream.resume().write("one, refuse me");
    await until(() => isLater, 5_000);
    stream.end(", and more");
    const [answer] = await answered;
    expect(answer[":status"]).toBe(200);
    expect(again[1]).toBe("one, refuse me, and more");
    isLater = false;
    const large = await client.ask(headers, `${"x".repeat(16 * 1024)}refuse me`);
    expect(large.headers["grpc-status"]).toBe("14");
    expect(again).toHaveLength(2);
  });
});

describe.each(MAYBE_PROCESSED)("a request that may have been processed: %s", (_how, ending) => {
  const send = endedOnce(ending);
  test("is sent again only if it is idempotent", async () => {
    expect(await send("GET")).toEqual({ status: 200, requests: 3 });
    expect(await send("POST", "body")).toEqual({ status: 502, requests: 2 });
  });
});

const staying = behind(() =>
  startHttp2Backend(({ stream, path }) => {
    if (path.endsWith("/stays"))
      setTimeout(() => stream.respond({ ":status": 204 }, { endStream: true }), 300);
  }),
);
test("a client that disconnects cancels only its own stream", async () => {
  const { backend, gate, path } = staying();
  const stays = ask(gate, path("/stays"));
  const socket = await openSocket(gate);
  socket.write(request([`GET ${path("/leaves")} HTTP/1.1`, "Host: localhost"]));
  await until(() => backend.requests.length === 2, 5_000);
  socket.destroy();
  const left = backend.requests.find((request) => request.path === path("/leaves"));
  await until(() => left?.stream.rstCode === constants.NGHTTP2_CANCEL, 5_000);
  expect((await stays).status).toBe(204);
  expect(backend.sessions).toHaveLength(1);
});

test("health checks, probes and the version use HTTP/2", async () => {
  let healthy = false;
  await using backend = await startHttp2Backend(({ stream, path }) => {
    stream.respond({ ":status": path !== "/healthz" || healthy ? 200 : 503 });
    stream.end(path === "/version" ? '{"version":"1.2.3"}' : `at ${path}`);
  });
  await using other = await startHttp2Backend();
  await using gate = await startSallyport({
    target: backend.url,
    config: {
      upstreams: {
        app: {
          protocol: "h2c",
          targets: [backend.url, other.url],
          health: { path: "/healthz", interval: "100ms", unhealthy: 1, healthy: 1 },
        },
      },
      admin: { probes: [{ path: "/probe", upstream: "app", target: "/deep" }] },
      version: { upstream: "app", path: "/version", field: "version" },
    },
  });
  const logged = (msg: string) => gate.log().find((line) => line["msg"] === msg);
  await until(() => logged("a target is left out") !== undefined, 5_000);
  expect(logged("a target is left out")).toMatchObject({
    target: backend.url,
    why: "health check: 503",
  });
  healthy = true;
  await until(() => logged("a target is used again") !== undefined, 5_000);
  const admin = { port: gate.adminPort };
  expect(await ask(admin, "/probe")).toMatchObject({ status: 200, body: "at /deep" });
  const version = await ask(gate, "/api/v1/version", { token: gate.token });
  expect(JSON.parse(version.body)).toMatchObject({ version: "1.2.3" });
  const { targets } = JSON.parse((await ask(admin, "/-/upstreams")).body);
  expect(targets).toEqual([
    expect.objectContaining({ target: backend.url, protocol: "h2c", state: "available" }),
    expect.objectContaining({ target: other.url, protocol: "h2c" }),
  ]);
});
