/**
 * Headers that override the path. IIS, Zend and Symfony (CVE-2018-14773) route by `X-Original-URL` or `X-Rewrite-URL`
 * instead of the request line; oauth2-proxy decided by a client's `X-Forwarded-Uri` (CVE-2026-40575), and Traefik
 * passed on `X-Forwarded-Prefix` from anyone (GHSA-6384-m2mw-rf54). With one of these, a request for a public path is
 * a request for a protected one, or vice versa. Others name another client (`X-Client-IP`), or a proxy for the
 * backend's own requests (`Proxy`, CVE-2016-5385). They decide nothing here, and do not reach the backend in any
 * spelling unless they come from a trusted proxy.
 */
import { describe, expect, it } from "vitest";
import type { HttpMessage } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const NAMES = [
  ...["X-Original-URL", "X-Original-URI", "X-Rewrite-URL", "X-Original-Host", "X-Original-Method"],
  ...["X-Forwarded-Uri", "X-Forwarded-Prefix", "X-Forwarded-Path", "X-Forwarded-Method"],
  ...["X-Forwarded-Scheme", "X-Forwarded-Server", "X-Forwarded-Ssl", "X-Forwarded-By"],
  ...[
    "X-Envoy-Original-Path",
    "X-Envoy-Original-Host",
    "Forwarded-For",
    "X-Client-IP",
    "Client-IP",
  ],
  ...["True-Client-IP", "X-True-Client-IP", "CF-Connecting-IP", "X-Cluster-Client-IP"],
  ...["X-Originating-IP", "Fastly-Client-IP", "Proxy"],
] as const;
const spellings = (name: string): string[] =>
  name.includes("-") ? [name, name.replaceAll("-", "_").toLowerCase()] : [name];

const attack = (path: string, value: string, names: readonly string[]): string =>
  request([
    `GET ${path} HTTP/1.1`,
    "Host: localhost",
    ...names.flatMap(spellings).map((name) => `${name}: ${value}`),
  ]);

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it("requires a token even if a header names a public path", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, attack("/admin", "/public/x", NAMES));
    expect(last.status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });

  it("passes none of them to the backend", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, attack("/public/x", "/admin", NAMES));
    expect(last.status).toBe(200);
    expect(namesOf(backend.requests(), "/admin")).toEqual([]);
  });
});

describe("Sallyport behind a trusted proxy", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: { server: { trustedProxies: ["127.0.0.0/8"] } },
  });

  it("requires a token, too", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, attack("/admin", "/public/x", NAMES));
    expect(last.status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("passes on all of them", async () => {
    const { gate, backend } = standing();
    await exchange(gate, attack("/public/x", "/admin", NAMES));
    const passed = namesOf(backend.requests(), "/admin");
    expect(passed).toEqual(NAMES.flatMap(spellings).map((name) => name.toLowerCase()));
  });
});

/** Returns the names of the headers that arrived with this value, in lower case. */
function namesOf(requests: readonly HttpMessage[], value: string): string[] {
  return requests
    .flatMap(({ headers }) => headers)
    .filter(([, arrived]) => arrived === value)
    .map(([name]) => name.toLowerCase());
}
