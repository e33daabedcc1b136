/**
 * Paths beyond the strict form, for backends that need them. Everything that is allowed is a chance for two readings:
 * `/public/x%2F..%2F..%2Fadmin` is below /public for the gate, and /admin for a backend that decodes it.
 * `//x/admin` is below / for the gate, and /admin for whoever parses it as a URL, such as `new URL(target, base)`, PHP's
 * `parse_url` and Python's `urlsplit`: what follows `//` is a host (RFC 3986 §4.2).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectHttp2 } from "../support/http2-client.ts";
import { connectTunnel } from "../support/http2-websocket.ts";
import { useLoosePaths } from "../support/loose-paths.ts";
import { type RawBackend, startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";

describe("with paths: encoded and asSent", () => {
  const sent = useLoosePaths();

  it.each([
    ["/public/queues/%2F/orders", "/public/queues/%2F/orders"],
    ["/public/@scope%2fname", "/public/@scope%2Fname"],
    [
      "/public/projects/group%2Fproject/files/a%23b",
      "/public/projects/group%2Fproject/files/a%23b",
    ],
    ["/public/a%3Bb=1", "/public/a%3Bb=1"],
    ["/sent/a;v=1/b", "/sent/a;v=1/b"],
    ["/sent/a//b", "/sent/a//b"],
    ["/sent/list[0]|x", "/sent/list[0]|x"],
  ])("%s arrives", async (path, expected) => {
    expect(await sent(path)).toEqual({ status: 200, got: expected });
  });

  it.each([
    ...["/public/..%2Fadmin", "/public/%2e%2e%2fadmin", "/public/a%2F..%2F..%2Fadmin"],
    ...["/public/%252e%252e%252fadmin", "/public%2Fadmin", "/public/admin%2Fusers"],
    ...["/public/a%00", "/public/a%0d%0a", "/public/%c0%af", "/public/..%5Cadmin", "/public/a;b"],
    ...["/public/a//b", "/sent/..;/admin", "/sent/..;x/admin", "/sent//admin", "/sent/;/admin"],
    ...["/sent/%2Fadmin", "/sent;/admin", "/sent/admin;x=1/users", "/sent/a\\..\\admin"],
    ...[
      "/public/..%20",
      "/sent/..%20",
      "/public/..%20/admin",
      "/public/.%20",
      "/public/%20../admin",
    ],
    ...["/public/admin%20", "/public/admin%20%20", "/sent/admin%20", "/public/a%2F..%20"],
    ...["/public/..%20%23a", "/public/admin%20%3Fa", "/sent/..%20;a"],
    ...["/api%2Fauthenticate", "/sent/%3F/../admin", "/sent/%23%2F..%2F..%2Fadmin"],
  ])("%s is refused, and reaches nobody", async (path) => {
    expect(await sent(path)).toEqual({ status: 400, got: undefined });
  });

  it("routes with strict paths accept no other paths", async () => {
    for (const path of ["/a%2Fb", "/a;b", "/a//b", "/public/admin/a%2Fb"]) {
      expect(await sent(path)).toEqual({ status: 400, got: undefined });
    }
  });
});

describe("a path that begins with two slashes", () => {
  const stack = new AsyncDisposableStack();
  let app: RawBackend;
  let other: RawBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    app = stack.use(await startRawBackend());
    other = stack.use(await startRawBackend());
    const upstreams = { app: { targets: [app.url] }, other: { targets: [other.url] } };
    const rewrite = { stripPrefix: "/in" };
    const loose = { auth: "none", paths: "asSent" };
    const routes = [
      { name: "admin", path: "/admin", upstream: "app" },
      { name: "in-admin", path: "/in/admin", upstream: "other", rewrite },
      { name: "in", path: "/in/", upstream: "other", rewrite, ...loose },
      { name: "all", path: "/", upstream: "app", ...loose },
    ];
    gate = stack.use(
      await startSallyport({
        target: app.url,
        withoutToken: true,
        config: { server: { http2: true }, upstreams, routes },
      }),
    );
  });
  afterAll(() => stack.disposeAsync());

  type Send = (path: string) => Promise<number>;
  const head = (path: string) => [`GET ${path} HTTP/1.1`, "Host: localhost"];
  const ways: readonly (readonly [string, Send])[] = [
    ["HTTP/1.1", async (path) => (await exchange(gate, request(head(path)))).last.status],
    [
      "HTTP/1.1, in absolute form",
      async (path) => (await exchange(gate, request(head(`http://localhost${path}`)))).last.status,
    ],
    [
      "HTTP/2",
      async (path) => {
        await using client = await connectHttp2(gate);
        return (await client.ask({ ":path": path })).status;
      },
    ],
    [
      "a WebSocket over HTTP/2",
      async (path) => {
        await using client = await connectHttp2(gate);
        return (await connectTunnel(client, path, {})).status;
      },
    ],
  ];

  describe.each(ways)("over %s", (_way, send) => {
    const arrives = async (path: string): Promise<readonly [number, readonly string[]]> => {
      for (const backend of [app, other]) backend.forget();
      const status = await send(path);
      return [status, [...app.seen(), ...other.seen()]];
    };

    it.each([
      ...[
        "//x/admin",
        "//x/admin/users",
        "///x/admin",
        "//x@y:80/admin",
        "//x//admin",
        "//;a/admin",
      ],
      ...["//x/%2Fadmin", "/%2Fx/admin", "/%5Cx/admin", "//x/admin;a", "//x/api/authenticate"],
      ...["/in//x/admin", "/in///x/admin/users", "/in//x/%2Fadmin", "/in/%2Fx/admin"],
    ])("%s is refused, since it may lead to another route", async (path) => {
      expect(await arrives(path)).toEqual([400, []]);
    });

    it.each([
      ["//x/other", "//x/other"],
      ["//index.html", "//index.html"],
      ["/in//x/other", "//x/other"],
      ["/in/a//x", "/a//x"],
      ["/x//admin", "/x//admin"],
    ])("%s arrives, since it leads to the same route anyway", async (path, expected) => {
      expect(await arrives(path)).toEqual([200, [`GET ${expected}`]]);
    });
  });
});
