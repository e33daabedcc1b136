/**
 * Saying who one is. A backend that believes `X-Forwarded-For` for its rate limits or allow lists, or builds links from
 * `X-Forwarded-Host`, believes the client when the proxy only appends to what came. Unless the peer is a trusted proxy,
 * Sallyport replaces all of them, `Forwarded` and `X-Real-IP` too.
 */
import { describe, expect, it } from "vitest";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

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
  const standing = useSallyport();

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
    config: { server: { trustedProxies: ["127.0.0.0/8"] } },
  });

  it("believes that proxy, and appends its address", async () => {
    const { gate, backend } = standing();
    const believed = ["X-Forwarded-For: 203.0.113.7", "X-Forwarded-Host: shop.example"];
    await exchange(gate, request(["GET /public/x HTTP/1.1", "Host: app.example", ...believed]));
    const headers = backend.requests()[0]?.headers ?? [];
    const hops = valuesOf(headers, "x-forwarded-for").join(",").split(/, */);
    expect(hops).toEqual(["203.0.113.7", "127.0.0.1"]);
    expect(valuesOf(headers, "x-forwarded-host")).toEqual(["shop.example"]);
  });
});

describe("http-proxy-3 as it comes", () => {
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
