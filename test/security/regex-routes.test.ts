/**
 * Routes with regular expressions. With a backtracking engine, one path of a few kilobytes can block the event loop
 * for hours (ReDoS); an expression that matches anywhere in the path opens `/admin/x.css`; and one that is compared
 * with another spelling than the backend gets opens what it was not written for. Here an expression matches the
 * complete canonical path, which is the one that is forwarded, and the time for every path is proportional to its
 * length.
 */
import { afterEach, describe, expect, it } from "vitest";
import { useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const ROUTES = [
  { name: "order", regex: "/users/[0-9]+/orders", auth: "none", upstream: "app" },
  { name: "files", regex: "/.*\\.(css|js)", auth: "none", upstream: "app" },
  { name: "hungry", regex: "/x/((a+)+|(a|a)*|(.*)*)b", auth: "none", upstream: "app" },
  { name: "encoded", regex: "/e/.+", auth: "none", paths: "encoded", upstream: "app" },
  { name: "segment", regex: "/f/[^/]+", auth: "none", paths: "encoded", upstream: "app" },
  { name: "sent", regex: "/s/[^/]+/.*", auth: "none", paths: "asSent", upstream: "app" },
  {
    name: "api",
    regex: "/api/v[0-9]+(/.*)?",
    auth: "none",
    upstream: "app",
    rewrite: { stripPrefix: "/api", addPrefix: "/public" },
  },
  { name: "public", path: "/public", auth: "none", upstream: "app" },
  { name: "admin", path: "/admin", upstream: "app" },
  { name: "rest", path: "/", upstream: "app" },
];

describe("a route by regular expression", () => {
  const standing = useSallyport(undefined, { withoutToken: true, config: { routes: ROUTES } });
  afterEach(() => standing().backend.forget());

  async function sent(path: string): Promise<[number, string | undefined]> {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, request([`GET ${path} HTTP/1.1`, "Host: localhost"]));
    return [last.status, backend.seen()[0]?.replace(/^GET /, "")];
  }

  it.each([
    ["/users/12/orders", "/users/12/orders"],
    ["/users/12/orders?a=/b", "/users/12/orders?a=/b"],
    ["/users/%31%32/orders", "/users/12/orders"],
    ["/a/b/site.css", "/a/b/site.css"],
    ["/e/a%2fb", "/e/a%2Fb"],
    ["/s/a;v=1/b", "/s/a;v=1/b"],
    ["/api/v1", "/public/v1"],
    ["/api/v12/x", "/public/v12/x"],
  ])("takes %s, and the backend gets the path that was matched", async (path, got) => {
    expect(await sent(path)).toEqual([200, got]);
  });

  it.each([
    ...["/users/12/orders/", "/users/12/orders/1", "/x/users/12/orders", "/users/1a/orders"],
    ...["/USERS/12/orders", "/users/12/Orders", "/users//orders", "/users/%C3%A9/orders"],
    // The longer prefix comes before the expression.
    ...["/admin/site.css", "/admin/users/a.js", "/site.css/", "/site.CSS", "/sitecss"],
    ...["/api/v", "/api/vx", "/apiv1", "/e/", "/f/a/b"],
  ])("does not take %s", async (path) => {
    const [status, got] = await sent(path);
    expect([[400, 401].includes(status), got]).toEqual([true, undefined]);
  });

  it.each([
    ...["/users/12/orders%0a", "/users/12/orders%0d%0a", "/users/12%0a/orders", "/a%0a.css"],
    ...["/users/12/x/../orders", "/users/./12/orders", "/users/12/%2e%2e/12/orders", "//site.css"],
    ...["/users/12%2Forders", "/users/12;a/orders", "/admin/..;/site.css", "/admin%2fsite.css"],
    // A backend that decodes it reads another path than the one that matches the expression.
    ...[
      "/f/a%2Fb",
      "/e/..%2Fadmin",
      "/e/%2e%2e%2fadmin",
      "/s/a/..;/b",
      "/s//x",
      "/e/a%2Fb%2F..%2F..%2Fx",
    ],
    ...["/users/12/orders%00", "/users/12/orders%20", "/admin/%2e/site.css", "/admin%5csite.css"],
  ])("%s is refused, and reaches nobody", async (path) => {
    expect(await sent(path)).toEqual([400, undefined]);
  });

  it("costs little, whatever the path", async () => {
    const before = performance.now();
    for (const end of ["!", "c", "/", "/b/"]) {
      const [status] = await sent(`/x/${"a".repeat(14_000)}${end}`);
      expect(status).toBe(401);
    }
    expect(performance.now() - before).toBeLessThan(2_000);
  });
});
