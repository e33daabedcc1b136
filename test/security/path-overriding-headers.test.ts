/**
 * Headers that override the path. IIS, Zend and Symfony (CVE-2018-14773) route by `X-Original-URL` or `X-Rewrite-URL`
 * instead of the request line; oauth2-proxy decided by a client's `X-Forwarded-Uri` (CVE-2026-40575), and Traefik
 * passed on `X-Forwarded-Prefix` from anyone (GHSA-6384-m2mw-rf54). With one of these, a request for a public path is
 * a request for a protected one, or vice versa. Others name another client (`X-Client-IP`), or a proxy for the
 * backend's own requests (`Proxy`, CVE-2016-5385). gunicorn takes `SCRIPT_NAME` from every peer on the loopback, and cuts
 * it off the path. Rack and Plack build the path of a file from `X-Accel-Mapping` (CVE-2025-61780, CVE-2026-7381), Ktor and Yii
 * believe `Front-End-Https`, Keycloak and Tomcat a certificate in `SSL-Client-Cert` (RFC 9440 has `Client-Cert`).
 * They decide nothing here, and do not reach the backend in any spelling. A trusted proxy passes on
 * what it does not know, so from it, too, only those pass that `server.trustedHeaders` names, in exactly this spelling.
 */
import { describe, expect, it } from "vitest";
import { connectHttp2 } from "../support/http2-client.ts";
import { connectTunnel } from "../support/http2-websocket.ts";
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
  ...["X-Originating-IP", "Fastly-Client-IP", "X-Remote-IP", "X-Original-Forwarded-For", "Proxy"],
  ...["X-Forwarded-Context", "X-Script-Name", "Script-Name", "Path-Info"],
  ...["X-Accel-Mapping", "X-Sendfile-Type", "X-Replaced-Path", "X-WAWS-Unencoded-URL"],
  ...["X-MS-Original-URL", "X-HTTP-Host-Override", "Front-End-Https", "X-Url-Scheme", "X-Scheme"],
  ...["X-ARR-SSL", "CloudFront-Forwarded-Proto", "CloudFront-Viewer-Address", "Client-Cert"],
  ...["Client-Cert-Chain", "X-Client-Cert", "SSL-Client-Cert", "SSL-Client-Verify"],
  ...["X-SSL-Client-CN", "X-ARR-ClientCert", "WL-Proxy-Client-Cert", "WL-Proxy-Client-IP"],
  ...["Proxy-Client-IP", "Fly-Client-IP", "CF-Connecting-IPv6", "X-Azure-ClientIP"],
  ...["X-Azure-SocketIP", "X-Envoy-External-Address", "X-AppEngine-User-IP"],
] as const;
const spellings = (name: string): string[] =>
  name.includes("-") ? [name, name.replaceAll("-", "_").toLowerCase()] : [name];
const ALL = NAMES.flatMap(spellings);

const attack = (
  path: string,
  value: string,
  names: readonly string[],
  more: readonly string[] = [],
): string =>
  request([
    `GET ${path} HTTP/1.1`,
    "Host: localhost",
    ...more,
    ...names.flatMap(spellings).map((name) => `${name}: ${value}`),
  ]);

const UPGRADE = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** There are more names than the usual limit. */
const limits = { headers: 200 };

describe("Sallyport", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: { server: { limits } },
  });

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

/** The headers of an HTTP/2 request that hold all names with this value. */
const fieldsWith = (value: string): Record<string, string> =>
  Object.fromEntries(ALL.map((name) => [name.toLowerCase(), value]));

interface Front {
  readonly port: number;
  readonly ca: string | undefined;
}

/** Sends a request for a public path in which all of the headers name a protected one. @returns the status. */
const WAYS: readonly (readonly [string, (gate: Front) => Promise<number>])[] = [
  [
    "HTTP/1.1",
    async (gate) => (await exchange(gate, attack("/public/x", "/admin", NAMES))).last.status,
  ],
  [
    "a WebSocket",
    async (gate) =>
      (await exchange(gate, attack("/public/x", "/admin", NAMES, UPGRADE))).last.status,
  ],
  [
    "HTTP/2",
    async (gate) => {
      await using client = await connectHttp2(gate);
      return (await client.ask({ ":path": "/public/x", ...fieldsWith("/admin") })).status;
    },
  ],
  [
    "a WebSocket over HTTP/2",
    async (gate) => {
      await using client = await connectHttp2(gate);
      return (await connectTunnel(client, "/public/x", fieldsWith("/admin"))).status;
    },
  ],
];

const behindProxy = (more: object) => ({
  withoutToken: true,
  config: {
    server: { http2: true, trustedProxies: ["127.0.0.0/8"], limits, ...more },
  },
});

describe("Sallyport behind a trusted proxy", () => {
  const standing = useSallyport(undefined, behindProxy({}));

  it("requires a token, too", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, attack("/admin", "/public/x", NAMES));
    expect(last.status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });

  it.each(WAYS)("passes none of them on over %s", async (_way, send) => {
    const { gate, backend } = standing();
    expect(await send(gate)).toBe(200);
    expect(backend.requests()).toHaveLength(1);
    expect(namesOf(backend.requests(), "/admin")).toEqual([]);
  });
});

describe("Sallyport behind a trusted proxy of which it trusts two more headers", () => {
  const trustedHeaders = ["X-Original-URI", "SCRIPT_NAME"];
  const standing = useSallyport(undefined, behindProxy({ trustedHeaders }));

  it.each(WAYS)("passes these on, in exactly this spelling, over %s", async (_way, send) => {
    const { gate, backend } = standing();
    expect(await send(gate)).toBe(200);
    const passed = namesOf(backend.requests(), "/admin");
    expect(passed.toSorted()).toEqual(["script_name", "x-original-uri"]);
  });
});

describe("Sallyport that trusts a header of proxies, but not this client", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: {
      server: {
        http2: true,
        trustedProxies: ["192.0.2.1"],
        limits,
        trustedHeaders: ["X-Original-URL"],
      },
    },
  });

  it("passes none of them on", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, attack("/public/x", "/admin", NAMES));
    expect(last.status).toBe(200);
    expect(namesOf(backend.requests(), "/admin")).toEqual([]);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("passes on all of them", async () => {
    const { gate, backend } = standing();
    await exchange(gate, attack("/public/x", "/admin", NAMES));
    const passed = namesOf(backend.requests(), "/admin");
    expect(passed).toEqual(ALL.map((name) => name.toLowerCase()));
  });
});

/** Returns the names of the headers that arrived with this value, in lower case. */
function namesOf(requests: readonly HttpMessage[], value: string): string[] {
  return requests
    .flatMap(({ headers }) => headers)
    .filter(([, arrived]) => arrived === value)
    .map(([name]) => name.toLowerCase());
}
