import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, type Answer } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { type PlainBackend, startPlainBackend } from "../support/plain-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { openWebSocket, UpgradeRefused } from "../support/websocket.ts";

let backend: EchoBackend;
let redirecting: PlainBackend;
let gate: Sallyport;

const route = (parts: object) => ({ name: "all", path: "/", upstream: "app", ...parts });
const start = (...routes: object[]): Promise<Sallyport> =>
  startSallyport({ target: backend.url, config: { routes } });

/** The routes of the instance that most tests share. */
const routes: object[] = [];

/** Adds a route with these settings. With `strip`, the route strips its own path. @returns the path. */
function shared(settings: object, strip?: object): string {
  const path = `/r${routes.length}`;
  const rewrite = strip === undefined ? {} : { rewrite: { stripPrefix: path, ...strip } };
  routes.push(route({ name: path.slice(1), path, ...rewrite, ...settings }));
  return path;
}

beforeAll(async () => {
  backend = await startEchoBackend();
  redirecting = await startPlainBackend((request, response) => {
    response.writeHead(302, [
      ["location", `https://${request.headers.host}/next?a=/b#c`],
      ["content-location", "/here"],
      ["refresh", '5; url="/later"'],
      ["set-cookie", "a=1; Path=/; HttpOnly"],
      ["set-cookie", "b=2; path=/cart"],
      ["set-cookie", "c=3"],
    ]);
    response.end();
  });
  gate = await startSallyport({
    target: backend.url,
    config: {
      routes: [...routes, route({})],
      upstreams: { app: {}, redirecting: { targets: [redirecting.url] } },
    },
  });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), redirecting[Symbol.asyncDispose]()]);
});

describe("the headers that a route changes", () => {
  const changed = shared({
    requestHeaders: {
      set: {
        "X-Caller": "${subject} at ${client}",
        "X-Trace": "${request_id}",
        Authorization: "Basic a2V5",
      },
      add: { Accept: "text/plain" },
      remove: ["X-Debug", "Cookie"],
    },
  });
  it("are set, added and removed in requests, with placeholders filled in", async () => {
    const headers = {
      "x-caller": "root",
      "x-request-id": "abc",
      x_debug: "1",
      cookie: "a=1",
      accept: "text/html",
    };
    const got = echoedBy(await ask(gate, `${changed}/x`, { token: gate.token, headers }));
    expect(got.header("x-caller")).toBe("alice at 127.0.0.1");
    expect(got.header("x-trace")).toBe("abc");
    expect(got.header("authorization")).toBe("Basic a2V5");
    expect(got.header("accept")).toBe("text/html | text/plain");
    for (const gone of ["x-debug", "x_debug", "cookie"]) expect(got.header(gone)).toBeUndefined();
  });

  const answering = shared({
    responseHeaders: {
      set: { "Strict-Transport-Security": "max-age=63072000", "Cache-Control": "private" },
      remove: ["X-Echo"],
    },
  });
  it("are changed in all responses, except the fields that Sallyport's own responses need", async () => {
    const answered = await ask(gate, `${answering}/x`, { token: gate.token });
    expect(answered.headers).toMatchObject({
      "strict-transport-security": "max-age=63072000",
      "cache-control": "private",
    });
    expect(answered.headers["x-echo"]).toBeUndefined();
    const refused = await ask(gate, `${answering}/x`);
    expect(refused.status).toBe(401);
    expect(refused.headers).toMatchObject({
      "strict-transport-security": "max-age=63072000",
      "cache-control": "no-store",
    });
  });

  it("change with a reload", async () => {
    await using gate = await start(route({ requestHeaders: { set: { "X-Tenant": "one" } } }));
    const file = join(gate.directory, "config.yaml");
    const before = await readFile(file, "utf8");
    await writeFile(file, before.replace('"one"', '"two"'));
    gate.signal("SIGHUP");
    await expect
      .poll(async () => echoedBy(await ask(gate, "/x", { token: gate.token })).header("x-tenant"))
      .toBe("two");
  });
});

describe("the Host for the backend", () => {
  it.each([
    ["preserve", "shop.example.com", shared({ hostHeader: "preserve" })],
    ["target", undefined, shared({ hostHeader: "target" })],
    [
      "inner.example.com:81",
      "inner.example.com:81",
      shared({ hostHeader: "inner.example.com:81" }),
    ],
  ])("with %s", async (_, expected, path) => {
    const headers = { host: "shop.example.com" };
    const got = echoedBy(await ask(gate, `${path}/x`, { token: gate.token, headers }));
    expect(got.header("host")).toBe(expected ?? new URL(backend.url).host);
    expect(got.header("x-forwarded-host")).toBe("shop.example.com");
  });

  it("applies to a WebSocket handshake", async () => {
    const hosts: (string | undefined)[] = [];
    await using plain = await startPlainBackend((request, response) => {
      hosts.push(request.headers.host);
      response.writeHead(403, { "x-secret": "1" }).end();
    });
    await using gate = await startSallyport({
      target: plain.url,
      config: {
        routes: [
          route({ hostHeader: "inner.example.com", responseHeaders: { remove: ["X-Secret"] } }),
        ],
      },
    });
    const refused = await openWebSocket(gate, "/ws", {
      authorization: `Bearer ${gate.token}`,
    }).catch((error: unknown) => error);
    if (!(refused instanceof UpgradeRefused)) throw new Error("it was not refused");
    expect(refused.status).toBe(403);
    expect(refused.response.headers["x-secret"]).toBeUndefined();
    expect(hosts).toEqual(["inner.example.com"]);
  });
});

describe("behind a stripped prefix", () => {
  const shop = route({ name: "shop", path: "/shop", rewrite: { stripPrefix: "/shop" } });

  const stripped = shared({}, {});
  it("the backend gets the prefix, which a client cannot forge", async () => {
    const headers = { "x-forwarded-prefix": "/forged" };
    const got = echoedBy(await ask(gate, `${stripped}/x`, { token: gate.token, headers }));
    expect([got.url, got.header("x-forwarded-prefix")]).toEqual(["/x", stripped]);
  });

  it("the prefix of a trusted proxy comes first", async () => {
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        server: { trustedProxies: ["127.0.0.1"], trustedHeaders: ["X-Forwarded-Prefix"] },
        routes: [shop],
      },
    });
    const headers = { "x-forwarded-prefix": "/outer/" };
    const got = echoedBy(await ask(gate, "/shop/x", { token: gate.token, headers }));
    expect(got.header("x-forwarded-prefix")).toBe("/outer/shop");
  });

  const mapped = shared({ upstream: "redirecting" }, {});
  it("URLs and cookie paths in responses are mapped back", async () => {
    const answer = await ask(gate, `${mapped}/x`, {
      token: gate.token,
      headers: { host: "api.example.com" },
    });
    expect(mappedOf(answer)).toEqual({
      location: `https://api.example.com${mapped}/next?a=/b#c`,
      "content-location": `${mapped}/here`,
      refresh: `5; url="${mapped}/later"`,
      "set-cookie": [`a=1; Path=${mapped}; HttpOnly`, `b=2; path=${mapped}/cart`, "c=3"],
    });
  });

  const unmapped = shared({}, { responses: false });
  it("nothing is mapped with responses: false", async () => {
    const answer = await ask(gate, `${unmapped}/redirect`, { token: gate.token });
    expect(answer.headers.location).toBe("/elsewhere");
  });
});

function mappedOf({ headers }: Answer): Record<string, unknown> {
  const names = ["location", "content-location", "refresh", "set-cookie"];
  return Object.fromEntries(names.map((name) => [name, headers[name]]));
}
