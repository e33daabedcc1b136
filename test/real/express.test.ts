/**
 * Express 5 behind Sallyport, with the settings of docs/backends.md: addresses, redirects, cookies, bodies and streams.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
} from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import express, { type ErrorRequestHandler, type Request } from "express";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, fieldsOf, type Question } from "../support/ask.ts";
import { listening } from "../support/listening.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";

/** Returns how the application sees the request. */
const seenBy = (request: Request) => ({
  ip: request.ip,
  ips: request.ips,
  protocol: request.protocol,
  secure: request.secure,
  hostname: request.hostname,
  host: request.host,
  subdomains: request.subdomains,
  url: request.originalUrl,
  prefix: request.get("X-Forwarded-Prefix"),
  subject: request.get("X-Auth-Subject"),
  authorization: request.get("Authorization"),
});

/** Creates a typical application. `finish` ends the stream of `/stream`. */
function application() {
  const app = express();
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  app.set("trust proxy", "loopback");
  app.get("/seen", (request, response) => void response.json(seenBy(request)));
  app.get("/absolute", (request, response) => {
    response.redirect(`${request.protocol}://${request.host}/new?a=1#part`);
  });
  app.get("/rooted", (_request, response) => response.redirect(303, "/new"));
  app.get("/relative", (_request, response) => response.redirect(307, "new"));
  app.get("/elsewhere", (_request, response) => response.redirect("https://id.example.com/new"));
  app.get("/mounted", (request, response) => {
    response.redirect(`${request.get("X-Forwarded-Prefix") ?? ""}/new`);
  });
  app.get("/cookies", (_request, response) => {
    response.cookie("session", "a b", { httpOnly: true, secure: true, sameSite: "lax" });
    response.cookie("cart", "1", { path: "/cart" }).clearCookie("old").send("ok");
  });
  app.post("/json", express.json({ limit: "10kb" }), (request, response) => {
    response.status(201).location("/json/1").json(request.body);
  });
  app.post("/form", express.urlencoded(), (request, response) => void response.json(request.body));
  app.post("/text", express.text(), (request, response) => void response.send(request.body));
  app.put("/files/:name", (request, response) => {
    const digest = createHash("sha256");
    request.on("data", (chunk: Buffer) => digest.update(chunk));
    request.on(
      "end",
      () => void response.json({ name: request.params.name, sha256: digest.digest("hex") }),
    );
  });
  app.delete("/files/:name", (_request, response) => void response.sendStatus(204));
  app.get("/cached", (_request, response) => void response.send("the same every time"));
  app.get("/stream", async (_request, response) => {
    response.type("text/event-stream").write("data: 1\n\n");
    await finished;
    response.end("data: 2\n\n");
  });
  app.get("/broken", () => {
    throw new Error("the application is broken");
  });
  // Express recognizes an error handler by its four parameters.
  const onError: ErrorRequestHandler = (error: { status?: number }, _request, response, next) => {
    if (response.headersSent) return next(error);
    response.status(error.status ?? 500).send("an error of the application");
  };
  app.use(onError);
  return { server: createServer(app), finish };
}

const stack = new AsyncDisposableStack();
const { server, finish } = application();
let gate: Sallyport;
let inner: Sallyport;
beforeAll(async () => {
  const { url: target } = stack.use(await listening(server));
  const shop = { path: "/shop", upstream: "app", rewrite: { stripPrefix: "/shop" } };
  const routes = [
    { ...shop, name: "shop" },
    { ...shop, name: "uploads", path: "/shop/files", limits: { bodyBytes: "unlimited" } },
    { name: "all", path: "/", upstream: "app" },
  ];
  gate = stack.use(await startSallyport({ target, config: { routes } }));
  const config = { routes, server: { trustedProxies: ["127.0.0.0/8"] } };
  inner = stack.use(await startSallyport({ target, config }));
});
afterAll(() => stack.disposeAsync());

const HOST = "www.shop.test:8443";
const get = (path: string, { headers, ...question }: Question = {}) =>
  ask(gate, path, { token: gate.token, headers: { host: HOST, ...headers }, ...question });

describe("Express", () => {
  it("sees the real user, client address and URL, whatever the client claims", async () => {
    const forged = { "x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "http" };
    const headers = { ...forged, "x-forwarded-host": "evil.test", "x-auth-subject": "root" };
    const common = { ip: "127.0.0.1", protocol: "https", secure: true, subject: "alice" };
    const host = { hostname: "www.shop.test", host: HOST, subdomains: ["www"] };
    const url = "/seen?q=%2F";
    const seen = fieldsOf(await get(`/shop${url}`, { headers }));
    expect(seen).toEqual({ ...common, ...host, url, prefix: "/shop", ips: ["127.0.0.1"] });
    expect(fieldsOf(await get(url, { headers }))).toEqual({
      ...common,
      ...host,
      url,
      ips: ["127.0.0.1"],
    });
  });

  it("sees the client's address behind a trusted proxy", async () => {
    const headers = { host: HOST, "x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "https" };
    const answer = await ask(inner, "/seen", { token: inner.token, headers });
    expect(fieldsOf(answer)).toMatchObject({
      ip: "203.0.113.9",
      ips: ["203.0.113.9", "127.0.0.1"],
    });
  });

  it.each([
    ["/shop", "/absolute", 302, `https://${HOST}/shop/new?a=1#part`],
    ["", "/absolute", 302, `https://${HOST}/new?a=1#part`],
    ["/shop", "/rooted", 303, "/shop/new"],
    ["", "/rooted", 303, "/new"],
    ["/shop", "/relative", 307, "new"],
    ["/shop", "/mounted", 302, "/shop/new"],
    ["/shop", "/elsewhere", 302, "https://id.example.com/new"],
  ])("%s%s redirects with %i to %s", async (prefix, path, status, location) => {
    const answer = await get(`${prefix}${path}`);
    expect([answer.status, answer.headers.location]).toEqual([status, location]);
  });

  it("sets cookies below the prefix, each in a separate field", async () => {
    const { headers } = await get("/shop/cookies");
    expect(headers["set-cookie"]).toEqual([
      "session=a%20b; Path=/shop; HttpOnly; Secure; SameSite=Lax",
      "cart=1; Path=/shop/cart",
      expect.stringMatching(/^old=; Path=\/shop; Expires=Thu, 01 Jan 1970/),
    ]);
    expect((await get("/cookies")).headers["set-cookie"]?.[0]).toContain("; Path=/; ");
  });

  it("parses JSON, compressed, form and text bodies", async () => {
    const json = { "content-type": "application/json" };
    const body = JSON.stringify({ a: ["ü", 1] });
    const made = await get("/shop/json", { method: "POST", headers: json, body });
    expect([made.status, made.headers.location, made.body]).toEqual([201, "/shop/json/1", body]);
    const zipped = { ...json, "content-encoding": "gzip" };
    const inflated = await get("/json", { method: "POST", headers: zipped, body: gzipSync(body) });
    expect(inflated.body).toBe(body);
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const posted = await get("/form", { method: "POST", headers: form, body: "a=1&a=2&b=%C3%BC" });
    expect(fieldsOf(posted)).toEqual({ a: ["1", "2"], b: "ü" });
    const plain = { "content-type": "text/plain; charset=utf-8" };
    expect((await get("/text", { method: "POST", headers: plain, body: "Grüße" })).body).toBe(
      "Grüße",
    );
  });

  it("its error responses pass unchanged", async () => {
    const headers = { "content-type": "application/json" };
    for (const [path, status, question] of [
      ["/json", 413, { method: "POST", headers, body: JSON.stringify("a".repeat(20_000)) }],
      ["/json", 400, { method: "POST", headers, body: "{" }],
      ["/broken", 500, {}],
    ] as const) {
      const answer = await get(`/shop${path}`, question);
      expect([answer.status, answer.body]).toEqual([status, "an error of the application"]);
      expect(answer.headers).not.toHaveProperty("proxy-status");
    }
    expect((await get("/shop/nowhere")).body).toContain("Cannot GET /nowhere");
  });

  it.each([true, false])(
    "accepts 20 MiB on a route without a limit; with Content-Length: %s",
    async (hasLength) => {
      const body = randomBytes(20 * 1024 * 1024);
      const sha256 = createHash("sha256").update(body).digest("hex");
      const length = hasLength ? { "content-length": body.length } : {};
      const answer = await send("PUT", "/shop/files/a%20b.bin", length, (sent) => sent.end(body));
      expect(JSON.parse(await text(answer))).toEqual({ name: "a b.bin", sha256 });
    },
  );

  it("answers without a body: 204, 304 and HEAD", async () => {
    const gone = await get("/files/a", { method: "DELETE" });
    expect([gone.status, gone.body, gone.headers["transfer-encoding"]]).toEqual([
      204,
      "",
      undefined,
    ]);
    const whole = await get("/cached");
    expect(whole.status).toBe(200);
    const { etag = "" } = whole.headers;
    const same = await get("/cached", { headers: { "if-none-match": etag } });
    expect([same.status, same.body, same.headers.etag]).toEqual([304, "", etag]);
    const head = await get("/cached", { method: "HEAD" });
    expect([head.status, head.body]).toEqual([200, ""]);
    expect(head.headers["content-length"]).toBe(whole.headers["content-length"]);
    // Express answers OPTIONS itself.
    expect((await get("/cached", { method: "OPTIONS" })).headers.allow).toBe("GET, HEAD");
  });

  it("streams: each write arrives before the next one", async () => {
    const answer = await send("GET", "/shop/stream", {}, (sent) => sent.end());
    const parts: string[] = [];
    for await (const part of answer) {
      parts.push(String(part));
      finish();
    }
    expect(parts).toEqual(["data: 1\n\n", "data: 2\n\n"]);
  });
});

/** Sends a request with any framing. Unlike `ask`, it resolves with the response as a stream. */
function send(
  method: string,
  path: string,
  headers: OutgoingHttpHeaders,
  end: (sent: ClientRequest) => void,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const { port, ca, token } = gate;
  const to = { host: "127.0.0.1", port, ca, servername: "localhost", agent: false };
  const all = { authorization: `Bearer ${token}`, ...headers };
  end(request({ ...to, method, path, headers: all }, resolve).on("error", reject));
  return promise;
}
