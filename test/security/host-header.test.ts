/**
 * Two hosts in one request. Node uses the first of two `Host` fields, and accepts an empty one or a list; a backend
 * or a cache before it may use the last. Routes, links and tenants then differ between check and execution. A request
 * has exactly one valid `Host` (RFC 9112 §3.2); everything else is refused.
 */
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const REFUSED: readonly { name: string; hosts: readonly string[]; naive?: number }[] = [
  { name: "two hosts", hosts: ["Host: a.example", "Host: b.example"], naive: 200 },
  { name: "the same host twice", hosts: ["Host: a.example", "host: a.example"], naive: 200 },
  { name: "an empty host", hosts: ["Host:"], naive: 200 },
  { name: "a list of hosts", hosts: ["Host: a.example, b.example"], naive: 200 },
  { name: "user information", hosts: ["Host: user@a.example"], naive: 200 },
  { name: "a path", hosts: ["Host: a.example/x"], naive: 200 },
  { name: "a space", hosts: ["Host: a.example b.example"], naive: 200 },
  { name: "an invalid port", hosts: ["Host: a.example:http"], naive: 200 },
  { name: "a query", hosts: ["Host: a.example?x"], naive: 200 },
  { name: "no host", hosts: [] },
];

const FORWARDED = ["a.example", "A.example:8443", "127.0.0.1", "[::1]:8443", "a_b.example"];

const get = (hosts: readonly string[]): string =>
  request(["GET /public/x HTTP/1.1", ...hosts, "X-Forwarded-Proto: https"]);

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it.each(REFUSED)("refuses $name", async ({ hosts }) => {
    const { gate, backend } = standing();
    expectRefusal(await exchange(gate, get(hosts), { responses: Infinity }), 400);
    expect(backend.seen()).toEqual([]);
  });

  it("refuses two hosts in HTTP/1.0, too", async () => {
    const { gate, backend } = standing();
    const bytes = request(["GET /public/x HTTP/1.0", "Host: a.example", "Host: b.example"]);
    expectRefusal(await exchange(gate, bytes, { responses: Infinity }), 400);
    expect(backend.seen()).toEqual([]);
  });

  it("gives the backend the target's host if an HTTP/1.0 client sends none", async () => {
    const { gate, backend } = standing();
    // RFC 9112 §3.2: a request over HTTP/1.1 has a host.
    expect((await exchange(gate, request(["GET /public/x HTTP/1.0"]))).last.status).toBe(200);
    const headers = backend.requests()[0]?.headers ?? [];
    expect(valuesOf(headers, "host")).toEqual([new URL(backend.url).host]);
    expect(valuesOf(headers, "x-forwarded-host")).toEqual([]);
    expect(valuesOf(headers, "forwarded").join()).toMatch(/^for=127\.0\.0\.1;proto=https$/);
    expect(headers.filter(([, value]) => value === "" || value.includes('""'))).toEqual([]);
  });

  it.each(FORWARDED)("accepts %s", async (host) => {
    const { gate, backend } = standing();
    expect((await exchange(gate, get([`Host: ${host}`]))).last.status).toBe(200);
    expect(backend.seen()).toEqual(["GET /public/x"]);
  });
});

describe("routes by host", () => {
  const route = (name: string, more: object) => ({
    name,
    path: `/${name}`,
    upstream: "app",
    ...more,
  });
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: {
      routes: [
        // The backend may take the target's name, which a request without a host gets, for this one.
        route("x", { name: "inner", hosts: ["inner.example"] }),
        route("x", { name: "outer", auth: "none" }),
        route("y", { name: "first", hosts: ["inner.example"], auth: "none" }),
        route("y", { name: "second", auth: "none" }),
      ],
    },
  });
  const statusOf = async (...lines: string[]): Promise<number | undefined> =>
    (await exchange(standing().gate, request(lines), { responses: Infinity })).last.status;

  it("refuses a request without a host that a stricter route may mean", async () => {
    expect(await statusOf("GET /x HTTP/1.0")).toBe(400);
    expect(standing().backend.seen()).toEqual([]);
  });

  it("forwards it if no route by host is stricter, or if it names another one", async () => {
    expect(await statusOf("GET /y HTTP/1.0")).toBe(200);
    expect(await statusOf("GET /x HTTP/1.0", "Host: a.example")).toBe(200);
    expect(await statusOf("GET /x HTTP/1.0", "Host: inner.example")).toBe(401);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it.each(REFUSED.filter((row) => row.naive !== undefined))(
    "forwards $name",
    async ({ hosts, naive }) => {
      expect((await exchange(standing().gate, get(hosts))).last.status).toBe(naive);
    },
  );
});
