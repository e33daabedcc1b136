import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, askLogin, fieldsOf } from "../support/ask.ts";
import { startPlainBackend, type PlainBackend } from "../support/plain-backend.ts";
import { exchange } from "../support/raw-client.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";

const APP = "https://app.example.com";

let backend: PlainBackend;
let gate: Sallyport;
let forwarded = 0;
beforeAll(async () => {
  backend = await startPlainBackend((request, response) => {
    forwarded += 1;
    const own = request.url?.startsWith("/own") === true;
    response.writeHead(200, {
      vary: "Accept",
      ...(own ? { "access-control-allow-origin": "https://backend.example.com" } : {}),
    });
    response.end("ok");
  });
  gate = await startSallyport({
    target: backend.url,
    config: {
      cors: {
        origins: [APP, "https://*.preview.example.com:8443"],
        credentials: true,
        maxAge: "1h",
      },
      routes: [
        { name: "open", path: "/open", auth: "none", methods: ["GET", "OPTIONS"], upstream: "app" },
        {
          name: "limited",
          path: "/limited",
          auth: "none",
          methods: ["GET"],
          upstream: "app",
          rateLimit: { requests: 1, within: "1h" },
        },
        { name: "all", path: "/", methods: ["PUT", "GET"], upstream: "app" },
      ],
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend[Symbol.asyncDispose]();
});

const preflight = (origin: string, through = gate, path = "/orders") =>
  ask(through, path, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "PUT",
      "access-control-request-headers": "authorization,content-type",
    },
  });

describe("a preflight", () => {
  it.each(["/orders", "/api/authenticate", "/open", "/nowhere"])(
    "for %s is answered without a token and without the backend",
    async (path) => {
      const before = forwarded;
      const answer = await preflight(APP, gate, path);
      expect(answer.status).toBe(200);
      expect(fieldsOf(answer)).toMatchObject({ success: true, message: "Other origins may ask" });
      expect(answer.headers).toMatchObject({
        "access-control-allow-origin": APP,
        "access-control-allow-credentials": "true",
        "access-control-allow-methods": "GET, HEAD, POST, OPTIONS, PUT",
        "access-control-allow-headers": "Authorization, Content-Type",
        "access-control-max-age": "3600",
        vary: "Origin",
      });
      expect(forwarded).toBe(before);
    },
  );

  it.each([
    ...["https://evil.example.com", "null", `${APP}.evil.example`, "https://APP.example.com"],
    ...["http://app.example.com", `${APP}:444`, "https://preview.example.com:8443", ""],
    ...["https://a.b.preview.example.com:8443", "https://.preview.example.com:8443"],
    ...["https://evil.example/.preview.example.com:8443", `${APP}, ${APP}`],
  ])("of the origin %j is refused without any Access-Control field", async (origin) => {
    const answer = await preflight(origin);
    expect(answer.status).toBe(403);
    const { vary, ...headers } = answer.headers;
    expect(vary).toBe("Origin");
    expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  it("of an origin that matches a pattern is answered", async () => {
    const origin = "https://pr-7.preview.example.com:8443";
    expect((await preflight(origin)).headers["access-control-allow-origin"]).toBe(origin);
  });

  it("requires an origin and a requested method; other OPTIONS requests are ordinary", async () => {
    const headers = { origin: APP };
    const answer = await ask(gate, "/orders", { method: "OPTIONS", headers });
    expect(answer.status).toBe(401);
    const open = await ask(gate, "/open", { method: "OPTIONS", headers });
    expect(open.body).toBe("ok");
  });
});

describe("the fields of a cross-origin response", () => {
  const allowed = {
    "access-control-allow-origin": APP,
    "access-control-allow-credentials": "true",
    "access-control-expose-headers": "X-Request-Id",
  };
  const exposed =
    "X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, Allow, Proxy-Status";
  const ofOwn = { ...allowed, "access-control-expose-headers": exposed };

  it("are on every response that Sallyport generates", async () => {
    const headers = { origin: APP };
    const login = await askLogin(gate, ALICE, headers);
    const wrong = await askLogin(gate, { ...ALICE, password: "no" }, headers);
    const version = await ask(gate, "/api/v1/version", { token: gate.token, headers });
    const missing = await ask(gate, "/orders", { headers });
    const unrouted = await ask(gate, "/orders", { method: "DELETE", token: gate.token, headers });
    const ambiguous = await ask(gate, "/a//b", { headers });
    const answers = [login, wrong, version, missing, unrouted, ambiguous];
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 200, 401, 404, 400]);
    for (const answer of answers) {
      expect(answer.headers).toMatchObject({ ...ofOwn, vary: "Origin" });
    }
  });

  it("let scripts read why they must wait, log in or ask differently", async () => {
    const headers = { origin: APP };
    await ask(gate, "/limited", { headers });
    const limited = await ask(gate, "/limited", { headers });
    expect(limited.status).toBe(429);
    const unknown = await ask(gate, "/orders", { headers });
    const method = await ask(gate, "/api/authenticate", { method: "PUT", headers });
    const cors = ["access-control-allow-origin", "access-control-allow-credentials", "vary"];
    // The Fetch Standard lets scripts read these without being named.
    const safelisted = ["cache-control", "content-length", "content-type"];
    const hopByHop = ["connection", "date", "keep-alive", "x-content-type-options"];
    const other = [...cors, ...safelisted, ...hopByHop, "access-control-expose-headers"];
    for (const answer of [limited, unknown, method]) {
      const listed = String(answer.headers["access-control-expose-headers"]).toLowerCase();
      const names = Object.keys(answer.headers).filter((name) => !other.includes(name));
      expect(listed.split(", ")).toEqual(expect.arrayContaining(names));
    }
    expect(Object.keys(limited.headers)).toEqual(
      expect.arrayContaining(["retry-after", "ratelimit", "ratelimit-policy"]),
    );
    // A backend's response exposes what the configuration says, and no more.
    const forwarded = await ask(gate, "/orders", { token: gate.token, headers });
    expect(forwarded.headers).toMatchObject(allowed);
  });

  it("name each header once, whatever `exposeHeaders` adds", async () => {
    await using more = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: { cors: { origins: [APP], exposeHeaders: ["X-Total", "retry-after"] } },
    });
    const answer = await ask(more, "/orders", { headers: { origin: APP } });
    const listed = String(answer.headers["access-control-expose-headers"]).split(", ");
    expect(listed.slice(0, 2)).toEqual(["X-Total", "retry-after"]);
    expect(listed.filter((name) => name.toLowerCase() === "retry-after")).toHaveLength(1);
    const open = await ask(more, "/public/x", { headers: { origin: APP } });
    expect(open.headers["access-control-expose-headers"]).toBe("X-Total, retry-after");
  });

  it("are added to a backend's response that has none, and Vary is extended", async () => {
    const headers = { origin: APP };
    const answer = await ask(gate, "/orders", { token: gate.token, headers });
    expect(answer.headers).toMatchObject({ ...allowed, vary: "Accept, Origin" });
    const own = await ask(gate, "/own", { token: gate.token, headers });
    expect(own.headers["access-control-allow-origin"]).toBe("https://backend.example.com");
    expect(own.headers["access-control-allow-credentials"]).toBeUndefined();
  });

  it("never name an origin that is not allowed", async () => {
    const headers = { origin: "https://evil.example.com" };
    const answer = await ask(gate, "/orders", { token: gate.token, headers });
    expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    expect(answer.headers.vary).toBe("Accept, Origin");
    const twice = await exchange(
      gate,
      [
        `GET /orders HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${gate.token}\r\n`,
        `Origin: ${APP}\r\nOrigin: https://evil.example.com\r\nConnection: close\r\n\r\n`,
      ].join(""),
    );
    expect(twice.raw.toLowerCase()).not.toContain("access-control-allow-origin");
  });
});

it("with * every origin is allowed, without credentials", async () => {
  await using open = await startSallyport({
    target: backend.url,
    config: { cors: { origins: ["*"] } },
  });
  const asked = await preflight("https://anybody.example", open);
  expect(asked.headers["access-control-allow-origin"]).toBe("*");
  const answer = await ask(open, "/orders", {
    token: open.token,
    headers: { origin: "https://anybody.example" },
  });
  expect(answer.headers["access-control-allow-origin"]).toBe("*");
  expect(answer.headers["access-control-allow-credentials"]).toBeUndefined();
});

it("without the cors section, preflights are ordinary requests", async () => {
  await using closed = await startSallyport({ withoutToken: true, target: backend.url });
  expect((await preflight(APP, closed)).status).toBe(401);
});
