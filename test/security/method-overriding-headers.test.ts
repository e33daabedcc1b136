/**
 * Headers that override the method. Rails, Laravel, Symfony, Express with method-override and others execute a `POST`
 * with `X-HTTP-Method-Override: DELETE` as a `DELETE`. A route that lets everyone read or post would let everyone
 * delete. Here only the method in the request line counts, and none of these headers reaches the backend, in any
 * spelling, not even from a trusted proxy, which passes on what its clients send.
 */
import { describe, expect, it } from "vitest";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const NAMES = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"];
const SPELLINGS = NAMES.flatMap((name) => [
  name,
  name.toUpperCase(),
  name.replaceAll("-", "_").toLowerCase(),
]);

const ROUTES = {
  routes: [
    { name: "open", path: "/public/x", methods: ["GET", "POST"], auth: "none", upstream: "app" },
    { name: "rest", path: "/", upstream: "app" },
  ],
};

const attack = (method: string, override: string): string =>
  request([
    `${method} /public/x HTTP/1.1`,
    "Host: localhost",
    "Content-Length: 0",
    ...SPELLINGS.map((name) => `${name}: ${override}`),
  ]);

describe.each([
  ["Sallyport", ROUTES],
  ["Sallyport behind a trusted proxy", { ...ROUTES, server: { trustedProxies: ["127.0.0.0/8"] } }],
])("%s", (_name, config) => {
  const standing = useSallyport(undefined, { withoutToken: true, config });

  it("forwards only the method that it has authorized", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, attack("POST", "DELETE"));
    expect(last.status).toBe(200);
    const [received] = backend.requests();
    expect(received?.startLine).toMatch(/^POST \/public\/x /);
    expect(received?.headers.filter(([, value]) => value.includes("DELETE"))).toEqual([]);
  });

  it("requires a token for a protected method, whatever a header says", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, attack("DELETE", "GET"));
    expect(last.status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("passes on all of them", async () => {
    const { gate, backend } = standing();
    await exchange(gate, attack("POST", "DELETE"));
    const passed = backend.requests().flatMap(({ headers }) => headers);
    const names = passed.filter(([, value]) => value.includes("DELETE")).map(([name]) => name);
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(2 * NAMES.length);
  });
});
