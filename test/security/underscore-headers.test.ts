/**
 * Names that other parsers take for ours. CGI, WSGI and many frameworks fold `-` and `_`, so `X_Forwarded_For` or
 * `X_Request_Id` arrives instead of the proxy's header. By default, names with `_` are dropped if they shadow one of
 * our headers, and pass otherwise. `server.underscoreHeaders` drops or rejects all of them: a backend may fold
 * `X_Api_Key` and a header that only its own proxy sets.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { type Http2Backend, startHttp2Backend } from "../support/http2-backend.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { connectTunnel } from "../support/http2-websocket.ts";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";

const SHADOWS = [
  "X_Forwarded_For",
  "X-Forwarded_Host",
  "X_Forwarded-Proto",
  "x_forwarded_port",
  "X_Real_IP",
  "X_Request_Id",
  "X_Auth_Subject",
  "X_Auth_Groups",
  "X_Auth_Issuer",
];
const FRAMING = ["Content_Length", "Transfer_Encoding"];
const bytes = request([
  "GET /public/x HTTP/1.1",
  "Host: localhost",
  ...[...SHADOWS, ...FRAMING].map((name) => `${name}: 7`),
  "my_own_header: kept",
]);

const HANDSHAKE = [
  ...["Connection: Upgrade, X_Other", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
const config = (underscoreHeaders: string) => ({
  server: { underscoreHeaders, http2: true },
});

const rejected = async (gate: Sallyport): Promise<number | undefined> =>
  (await scrape(gate)).value('sallyport_requests_rejected_total{reason="underscore_header"}');

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it("drops them if they shadow one of our headers", async () => {
    const { gate, backend } = standing();
    expect((await exchange(gate, bytes)).last.status).toBe(200);
    const headers = backend.requests()[0]?.headers ?? [];
    const arrived = SHADOWS.filter((name) => valuesOf(headers, name.toLowerCase()).length > 0);
    expect(arrived).toEqual([]);
    expect(valuesOf(headers, "my_own_header")).toEqual(["kept"]);
  });
});

describe("Sallyport with drop", () => {
  const standing = useSallyport(undefined, { withoutToken: true, config: config("drop") });

  const namesThatArrived = (): string[] =>
    standing()
      .backend.requests()
      .flatMap(({ headers }) => headers.map(([name]) => name));

  it("drops all of them, and keeps the others", async () => {
    const { gate } = standing();
    const more = ["_: 1", "x_: 2", "X-Kept: 3", "X-Value: a_b"];
    const [start = "", ...lines] = bytes.trimEnd().split("\r\n");
    const answer = await exchange(gate, request([start, ...lines, ...more]));
    expect(answer.last.status).toBe(200);
    const names = namesThatArrived();
    expect(names.filter((name) => name.includes("_"))).toEqual([]);
    expect(names).toEqual(expect.arrayContaining(["X-Kept", "X-Value", "Host"]));
  });

  it("drops them from requests over HTTP/2", async () => {
    const { gate } = standing();
    await using client = await connectHttp2(gate);
    const fields = { ":path": "/public/x", x_own: "1", "x-auth_subject": "root", "x-kept": "2" };
    expect((await client.ask(fields)).status).toBe(200);
    const names = namesThatArrived();
    expect(names.filter((name) => name.includes("_"))).toEqual([]);
    expect(names).toContain("x-kept");
  });

  it("drops them from WebSocket handshakes", async () => {
    const { gate } = standing();
    const lines = ["GET /public/ws HTTP/1.1", "Host: localhost", ...HANDSHAKE, "X_Own: 1"];
    await exchange(gate, request(lines));
    await using client = await connectHttp2(gate);
    await connectTunnel(client, "/public/ws", { x_own: "1" });
    const names = namesThatArrived();
    expect(names.filter((name) => name.toLowerCase() === "sec-websocket-key")).toHaveLength(2);
    expect(names.filter((name) => name.includes("_"))).toEqual([]);
  });
});

describe("Sallyport with reject", () => {
  const standing = useSallyport(undefined, { withoutToken: true, config: config("reject") });

  it.each([
    ["a name that shadows ours", "X_Request_Id: 7"],
    ["a custom name", "my_own_header: kept"],
    ["an underscore alone", "_: 1"],
  ])("answers %s with 400, and says why in the log", async (_name, line) => {
    const { gate, backend } = standing();
    const before = (await rejected(gate)) ?? 0;
    const start = ["GET /public/x HTTP/1.1", "Host: localhost"];
    const { last, ended } = await exchange(gate, request([...start, line]), {
      responses: Infinity,
    });
    expectEnvelope(last, 400);
    expect([last.header("connection"), ended]).toEqual(["close", "closed"]);
    expect(backend.requests()).toEqual([]);
    expect(await rejected(gate)).toBe(before + 1);
    const access = (): unknown => gate.log().findLast(({ path }) => path === "/public/x");
    await expect.poll(access).toMatchObject({ status: 400, reason: "underscore_header" });
    expect((await exchange(gate, request([...start, "X-Value: a_b"]))).last.status).toBe(200);
  });

  it("answers a request over HTTP/2 with 400", async () => {
    const { gate, backend } = standing();
    await using client = await connectHttp2(gate);
    const refused = await client.ask({ ":path": "/public/x", x_own: "1" });
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.body)).toMatchObject({ success: false });
    expect(backend.requests()).toEqual([]);
    expect((await client.ask({ ":path": "/public/x" })).status).toBe(200);
  });

  it("answers WebSocket handshakes with 400", async () => {
    const { gate, backend } = standing();
    const lines = ["GET /public/ws HTTP/1.1", "Host: localhost", ...HANDSHAKE, "X_Own: 1"];
    expectEnvelope((await exchange(gate, request(lines))).last, 400);
    await using client = await connectHttp2(gate);
    expect((await connectTunnel(client, "/public/ws", { x_own: "1" })).status).toBe(400);
    expect(backend.requests()).toEqual([]);
  });
});

/** Trailers reach only HTTP/2 backends. */
describe.each(["allow", "drop", "reject"])("trailers with %s", (policy) => {
  const stack = new AsyncDisposableStack();
  let backend: Http2Backend;
  let gate: Sallyport;
  let whole: string[] = [];
  beforeAll(async () => {
    backend = stack.use(
      await startHttp2Backend(async ({ stream, body }) => {
        const content = await body().catch(() => undefined);
        if (content === undefined) return;
        whole.push(content);
        stream.respond({ ":status": 200 });
        stream.end();
      }),
    );
    const upstreams = { app: { protocol: "h2c" } };
    const options = { target: backend.url, config: { ...config(policy), upstreams } };
    gate = stack.use(await startSallyport(options));
  });
  afterAll(() => stack.disposeAsync());
  beforeEach(() => void (whole = []));

  const passed = { allow: { x_sum: "1", "x-kept": "2" }, drop: { "x-kept": "2" } };

  function expectPolicy(status: number, reason: unknown): void {
    if (policy === "reject") {
      expect([status, reason]).toEqual([400, "underscore_header"]);
      // The backend has not seen its end.
      expect(whole).toEqual([]);
    } else {
      expect(status).toBe(200);
      expect(whole).toEqual(["body"]);
      const trailers = Object.entries(backend.requests.at(-1)?.trailers() ?? {});
      expect(Object.fromEntries(trailers)).toEqual(passed[policy === "allow" ? "allow" : "drop"]);
    }
  }

  const reasonFor = async (path: string): Promise<unknown> => {
    const line = () => gate.log().find((each) => each["path"] === path);
    await expect.poll(line).toBeDefined();
    return line()?.["reason"];
  };

  it("of a request over HTTP/1.1", async () => {
    const lines = ["POST /public/one HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked"];
    const body = chunked("body", ["x_sum: 1", "X_Auth-Subject: root", "x-kept: 2"]);
    const { last } = await exchange(gate, request(lines, body));
    if (policy === "reject") expectEnvelope(last, 400);
    expectPolicy(last.status, await reasonFor("/public/one"));
  });

  it("of a request over HTTP/2, which are sent when the backend has the body", async () => {
    await using client = await connectHttp2(gate);
    const stream = client.session.request(
      { ":method": "POST", ":path": "/public/two" },
      { waitForTrailers: true },
    );
    const { promise, resolve } = Promise.withResolvers<number>();
    stream.on("response", (head) => resolve(Number(head[":status"]))).resume();
    stream.on("wantTrailers", () =>
      stream.sendTrailers({ x_sum: "1", "x_auth-subject": "root", "x-kept": "2" }),
    );
    stream.write("body");
    await expect.poll(() => backend.requests.at(-1)?.path).toBe("/public/two");
    stream.end();
    expectPolicy(await promise, await reasonFor("/public/two"));
    expect((await rejected(gate)) ?? 0).toBe(policy === "reject" ? 2 : 0);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("passes them on", async () => {
    const { gate, backend } = standing();
    await exchange(gate, bytes);
    const headers = backend.requests()[0]?.headers ?? [];
    const arrived = SHADOWS.filter((name) => valuesOf(headers, name.toLowerCase()).length > 0);
    expect(arrived).toEqual(SHADOWS);
  });
});
