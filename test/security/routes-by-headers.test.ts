/**
 * Routes by `headers` that require more than the route behind them. A caller whom the stricter route refuses sends the
 * field so that Sallyport does not find the value, but the backend does: twice, as a list, in another case, with `_` for
 * `-` (CGI, WSGI), with a parameter, in quotes, or as a trailer. Such a request is refused, whatever its token.
 */
import { describe, expect, it } from "vitest";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { logLine } from "../support/log-line.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";
import { startSallyport } from "../support/sallyport.ts";

const routes = [
  {
    name: "admin",
    path: "/",
    upstream: "app",
    headers: { "X-Admin": "true" },
    require: { groups: { any: ["admins"] } },
  },
  { name: "canary", path: "/", upstream: "app", headers: { "X-Canary": "always", "X-Eu": "1" } },
  {
    name: "json",
    path: "/json",
    upstream: "app",
    headers: { Accept: "application/json" },
    require: { groups: { any: ["admins"] } },
  },
  {
    name: "cookie",
    path: "/cookie",
    upstream: "app",
    headers: { Cookie: "admin=1; b=2" },
    require: { groups: { any: ["admins"] } },
  },
  { name: "rest", path: "/", upstream: "app" },
];

const EVASIONS: readonly (readonly [string, readonly string[]])[] = [
  ["twice", ["X-Admin: true", "X-Admin: true"]],
  ["with another value before", ["X-Admin: false", "x-admin: true"]],
  ["with another value behind", ["X-Admin: true", "X-Admin: false"]],
  ["as a list", ["X-Admin: true, true"]],
  ["in a list", ["X-Admin: false,true"]],
  ["in another case", ["X-Admin: TRUE"]],
  ["with an underscore", ["X_Admin: true"]],
  ["with an underscore, too", ["X-Admin: false", "x_admin: true"]],
  ["in quotes", ['X-Admin: "true"']],
  ["with a parameter", ["X-Admin: true;q=1"]],
  ["as a parameter", ["X-Admin: false; true"]],
  ["before a blank of Latin-1", ["X-Admin: true\u00a0"]],
  ["before a line end of Latin-1", ["X-Admin: true\u0085"]],
];
const PASSING: readonly (readonly string[])[] = [
  [],
  ["X-Admin: false"],
  ["X-Admin: false", "X-Admin: no"],
  ["X-Admin: trueish"],
  ["X-Admin2: true"],
  ["X-Canary: always", "X-Canary: never"],
  ["X-Canary: ALWAYS", "X-Eu: 1"],
  ["X_Canary: always", "X-Eu: 1"],
  ["Accept: application/json, text/plain, */*"],
];

describe("Sallyport", () => {
  const standing = useSallyport(undefined, {
    config: { server: { http2: true }, routes },
  });

  const overHttp1 = async (fields: readonly string[], path = "/x"): Promise<number> => {
    const { gate } = standing();
    const authorization = `Authorization: Bearer ${gate.token}`;
    const head = [`GET ${path} HTTP/1.1`, "Host: localhost", authorization, ...fields];
    return (await exchange(gate, request(head))).last.status;
  };

  const overHttp2 = async (fields: readonly string[]): Promise<number> => {
    const { gate } = standing();
    await using client = await connectHttp2(gate);
    const headers: Record<string, string[]> = { authorization: [`Bearer ${gate.token}`] };
    for (const field of fields) {
      const [name = "", value = ""] = field.split(": ");
      (headers[name.toLowerCase()] ??= []).push(value);
    }
    return (await client.ask({ ":path": "/x", ...headers })).status;
  };

  const ways = [
    ["HTTP/1.1", overHttp1],
    ["HTTP/2", overHttp2],
  ] as const;

  describe.each(ways)("over %s", (_way, send) => {
    it("compares the usual spelling", async () => {
      expect(await send(["X-Admin: true"])).toBe(403);
      expect(standing().backend.requests()).toEqual([]);
    });

    it.each(EVASIONS)("refuses the field %s", async (_how, fields) => {
      expect(await send(fields)).toBe(400);
      expect(standing().backend.requests()).toEqual([]);
    });

    it.each(PASSING)(
      "lets through what no backend reads as the value: %s %s",
      async (...fields) => {
        expect(await send(fields)).toBe(200);
        expect(standing().backend.requests()).toHaveLength(1);
      },
    );
  });

  it("says so in the log", async () => {
    expect(await overHttp1(["X-Admin: TRUE"], "/logged")).toBe(400);
    await logLine(standing().gate, { path: "/logged", status: 400, reason: "ambiguous_header" });
  });

  it("compares a header only where a route does", async () => {
    const list = ["Accept: application/json, text/plain, */*"];
    expect(await overHttp1(list, "/other")).toBe(200);
    expect(await overHttp1(list, "/json")).toBe(400);
    expect(await overHttp1(["Accept: application/json"], "/json")).toBe(403);
  });
});

describe("Sallyport with a route by a cookie", () => {
  const standing = useSallyport(undefined, { config: { server: { http2: true }, routes } });
  const overHttp1 = async (cookies: readonly string[]): Promise<number> => {
    const { gate } = standing();
    const head = [
      "GET /cookie HTTP/1.1",
      ...["Host: localhost", `Authorization: Bearer ${gate.token}`],
    ];
    const fields = cookies.map((cookie) => `Cookie: ${cookie}`);
    return (await exchange(gate, request([...head, ...fields]))).last.status;
  };
  const overHttp2 = async (cookie: string[]): Promise<number> => {
    const { gate } = standing();
    await using client = await connectHttp2(gate);
    const authorization = `Bearer ${gate.token}`;
    return (await client.ask({ ":path": "/cookie", authorization, cookie })).status;
  };

  it.each([
    [403, ["admin=1; b=2"]],
    [400, ["b=2; admin=1"]],
    [400, ["a=0; admin=1; b=2"]],
    [400, ["admin=1;b=2"]],
    [400, ["admin=1", "b=2", "c=3"]],
    [200, ["admin=1"]],
    [200, ["admin=2; b=2"]],
    [200, ["xadmin=1; b=2"]],
  ])("%i: %j", async (status, cookies) => {
    expect(await overHttp1(cookies)).toBe(status);
    expect(await overHttp2(cookies)).toBe(status);
  });
});

/** The other way round: the field leads to the lax route, and `Connection` makes Sallyport remove it on the way to the backend. */
describe("Sallyport with a lax route by a header that ends at this hop", () => {
  const lax = [
    {
      name: "preview",
      path: "/",
      upstream: "app",
      auth: "none",
      headers: { "X-Preview": "1" },
    },
    { name: "rest", path: "/", upstream: "app" },
  ];
  const standing = useSallyport(undefined, { withoutToken: true, config: { routes: lax } });

  it.each([
    [200, []],
    [200, ["Connection: keep-alive, X-Other"]],
    [401, ["Connection: X-Preview"]],
    [401, ["Connection: keep-alive", "connection: close ,\tx-preview"]],
  ])("%i: %j", async (status, fields) => {
    const { gate, backend } = standing();
    const head = ["GET /x HTTP/1.1", "Host: localhost", "X-Preview: 1", ...fields];
    expect((await exchange(gate, request(head))).last.status).toBe(status);
    expect(backend.requests()).toHaveLength(status === 200 ? 1 : 0);
  });
});

describe("Sallyport before an HTTP/2 backend", () => {
  it("passes no such header on as a trailer", async () => {
    await using backend = await startHttp2Backend(async ({ stream, body }) => {
      await body();
      stream.respond({ ":status": 200 });
      stream.end();
    });
    const upstreams = { app: { protocol: "h2c" } };
    await using gate = await startSallyport({ target: backend.url, config: { upstreams, routes } });
    const authorization = `Authorization: Bearer ${gate.token}`;
    const head = ["POST /x HTTP/1.1", "Host: localhost", authorization];
    const body = chunked("body", ["X-Admin: true", "x_admin: true", "X-Kept: 1"]);
    const bytes = request([...head, "Transfer-Encoding: chunked"], body);
    expect((await exchange(gate, bytes)).last.status).toBe(200);
    const trailers = Object.entries(backend.requests.at(-1)?.trailers() ?? {});
    expect(Object.fromEntries(trailers)).toEqual({ "x-kept": "1" });
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("passes on every one of these spellings", async () => {
    const { gate, backend } = standing();
    for (const [, fields] of EVASIONS) {
      backend.forget();
      await exchange(gate, request(["GET /public/x HTTP/1.1", "Host: localhost", ...fields]));
      const names = backend.requests()[0]?.headers.map(([name]) => name.toLowerCase());
      expect(names?.some((name) => /^x[-_]admin$/.test(name))).toBe(true);
    }
  });
});
