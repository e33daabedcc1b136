/**
 * Clients that lie about themselves. A backend that trusts `X-Forwarded-For` for rate limits or allow lists, or
 * builds links from `X-Forwarded-Host`, trusts the client if the proxy only appends to what it received. Unless the
 * peer is a trusted proxy, Sallyport replaces all of these headers, including `Forwarded` and `X-Real-IP`. And if a
 * trusted proxy writes its client in a form that is not understood, for example with a port, all clients become one,
 * and a client that guesses passwords locks out everyone else.
 */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { valuesOf } from "../support/http-reader.ts";
import { logLine } from "../support/log-line.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";
import type { LogLine } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const FORGED = [
  "X-Forwarded-For: 203.0.113.7",
  "x-forwarded-for: 203.0.113.8",
  "X_Forwarded_For: 203.0.113.9",
  "X-Forwarded-Host: evil.example",
  "X-Forwarded-Proto: gopher",
  "X-Forwarded-Port: 1",
  "X-Real-IP: 203.0.113.7",
  "Forwarded: for=203.0.113.7;host=evil.example;proto=gopher",
];
const attack = request(["GET /public/x HTTP/1.1", "Host: app.example", ...FORGED]);
const FORGERY = /203\.0\.113|evil\.example|gopher/;

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it("replaces what the client says about itself", async () => {
    const { gate, backend } = standing();
    expect((await exchange(gate, attack)).last.status).toBe(200);
    const headers = backend.requests()[0]?.headers ?? [];
    expect(headers.filter(([, value]) => FORGERY.test(value))).toEqual([]);
    expect(valuesOf(headers, "x-forwarded-for")).toEqual(["127.0.0.1"]);
    expect(valuesOf(headers, "x-forwarded-host")).toEqual(["app.example"]);
    expect(valuesOf(headers, "x-forwarded-proto")).toEqual(["https"]);
    expect(valuesOf(headers, "x-forwarded-port")).toEqual(["443"]);
  });
});

describe("Sallyport behind a trusted proxy", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: { server: { trustedProxies: ["127.0.0.0/8"] } },
  });

  it("trusts that proxy, and appends its address", async () => {
    const { gate, backend } = standing();
    const believed = ["X-Forwarded-For: 203.0.113.7", "X-Forwarded-Host: shop.example"];
    await exchange(gate, request(["GET /public/x HTTP/1.1", "Host: app.example", ...believed]));
    const headers = backend.requests()[0]?.headers ?? [];
    const hops = valuesOf(headers, "x-forwarded-for").join(",").split(/, */);
    expect(hops).toEqual(["203.0.113.7", "127.0.0.1"]);
    expect(valuesOf(headers, "x-forwarded-host")).toEqual(["shop.example"]);
  });

  it.each([
    ["203.0.113.7:4711", "203.0.113.7"],
    ["[2001:db8::1]:443", "2001:db8::1"],
    ["::FFFF:203.0.113.7", "203.0.113.7"],
    ["::ffff:cb00:7107", "203.0.113.7"],
  ])("counts %s as %s", async (written, client) => {
    const { gate, backend } = standing();
    const head = ["GET /public/x HTTP/1.1", "Host: app.example", `X-Forwarded-For: ${written}`];
    const requestId = randomUUID();
    await exchange(gate, request([...head, `X-Request-Id: ${requestId}`]));
    expect(valuesOf(backend.requests()[0]?.headers ?? [], "x-real-ip")).toEqual([client]);
    expect(await logLine(gate, { request_id: requestId })).toMatchObject({ client });
  });

  it("logs when that proxy names no client, but not for each request", async () => {
    const { gate } = standing();
    const MESSAGE = "a trusted proxy does not name the client";
    for (const sent of [["Forwarded: for=203.0.113.7"], ["X-Forwarded-For: unknown"], []]) {
      await exchange(gate, request(["GET /public/y HTTP/1.1", "Host: app.example", ...sent]));
    }
    const told = (): LogLine[] => gate.log().filter(({ msg }) => msg === MESSAGE);
    const asked = (): LogLine[] => gate.log().filter(({ path }) => path === "/public/y");
    await until(() => asked().length === 3);
    expect(told()).toMatchObject([{ level: "warn", proxy: "127.0.0.1" }]);
    expect(asked().map(({ client }) => client)).toEqual(Array(3).fill("127.0.0.1"));
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("appends to the forgery and keeps the forged host", async () => {
    const { gate, backend } = standing();
    await exchange(gate, attack);
    const headers = backend.requests()[0]?.headers ?? [];
    expect(valuesOf(headers, "x-forwarded-for").join()).toContain("203.0.113.7");
    expect(valuesOf(headers, "x-forwarded-host")).toEqual(["evil.example"]);
    expect(valuesOf(headers, "x-real-ip")).toEqual(["203.0.113.7"]);
  });
});
