import type { PeerName } from "./peers.ts";
import { measureAtRest } from "./scenarios/at-rest.ts";
import { measureFullCache } from "./scenarios/full-cache.ts";
import { measureHandshakes } from "./scenarios/handshakes.ts";
import { measureHttp2Requests } from "./scenarios/http2-requests.ts";
import { measureIdle } from "./scenarios/idle.ts";
import { measureIdleStreams } from "./scenarios/idle-streams.ts";
import { measureOpenLoop } from "./scenarios/open-loop.ts";
import { measureRequests } from "./scenarios/requests.ts";
import type { Scenario } from "./scenarios/scenario.ts";
import { measureStartUp } from "./scenarios/start-up.ts";
import { measureStorms } from "./scenarios/storms.ts";
import { measureTransfers } from "./scenarios/transfers.ts";

const ONE_THREAD: readonly PeerName[] = [
  "sallyport",
  "haproxy",
  "haproxy-rs256",
  "haproxy-es256",
  "envoy",
  "envoy-es256",
  "nginx",
  "caddy",
  "traefik",
  "fastify",
  "express",
  "http-proxy-3",
];
const CHECK_ES256: readonly PeerName[] = [
  "sallyport",
  "haproxy-es256",
  "fastify",
  "express",
  "http-proxy-3",
];
const WITHOUT_TOKEN_KINDS = ONE_THREAD.filter((peer) => !/^(?:haproxy|envoy)-/.test(peer));
const NATIVE: readonly PeerName[] = [
  "sallyport",
  "haproxy",
  "haproxy-es256",
  "nginx",
  "caddy",
  "traefik",
];
const HTTP2: readonly PeerName[] = ["sallyport", "haproxy", "envoy", "envoy-es256", "caddy"];
const BARE_NODE: readonly PeerName[] = ["node-http2-hello", "node-http2-proxy"];

/** Twice what Sallyport caches: sent in turn, none of them is still cached when it is sent again. */
const MORE_TOKENS_THAN_REMEMBERED = 20_000;

export const SCENARIOS = {
  a: {
    title: "one token, keep-alive, small GET",
    run: async (bench) => [
      ...(await measureRequests(bench, { scenario: "a", peers: ONE_THREAD, tokens: 1 })),
      ...(await measureFullCache(bench, "a")),
    ],
  },
  b: {
    title: "every request another valid token, none of them remembered",
    run: (bench) =>
      measureRequests(bench, {
        scenario: "b",
        peers: CHECK_ES256,
        tokens: MORE_TOKENS_THAN_REMEMBERED,
      }),
  },
  c: {
    title: "POST of 4 KiB JSON, one token",
    run: (bench) =>
      measureRequests(bench, { scenario: "c", peers: ONE_THREAD, tokens: 1, bodyBytes: 4096 }),
  },
  d: {
    title: "requests of 256 MiB; memory at its greatest",
    run: (bench) => measureTransfers(bench, "d", WITHOUT_TOKEN_KINDS),
  },
  e: {
    title: "500 proxied requests per second among logins, refused tokens and handshakes",
    run: (bench) => measureStorms(bench, "e"),
  },
  f: {
    title: "idle connections: memory that each adds",
    run: (bench) => measureIdle(bench, "f", NATIVE),
  },
  g: {
    title: "start to /readyz, and what is installed",
    run: (bench) => measureStartUp(bench, "g"),
  },
  h: {
    title: "one and two workers",
    run: (bench) =>
      measureRequests(bench, {
        scenario: "h",
        peers: ["sallyport", "sallyport-2"],
        tokens: 1,
        cores: "all",
      }),
  },
  i: {
    title: "latency at saturation, and at fixed rates from when each request was due",
    run: (bench) => measureOpenLoop(bench, "i", ["sallyport", "envoy-es256"]),
  },
  j: {
    title: "a connection over TLS 1.3 with one request, its handshake full or resumed",
    run: (bench) => measureHandshakes(bench, "j", ["sallyport", "haproxy", "caddy"]),
  },
  k: {
    title: "a process that nobody asks",
    run: (bench) => measureAtRest(bench, "k"),
  },
  l: {
    title: "small GET over HTTP/2, HTTP/1.1 to the backend",
    run: (bench) =>
      measureHttp2Requests(bench, {
        scenario: "l",
        peers: [...HTTP2, ...BARE_NODE],
        grpc: false,
      }),
  },
  m: {
    title: "unary call of gRPC, HTTP/2 on both sides",
    run: (bench) =>
      measureHttp2Requests(bench, { scenario: "m", peers: [...HTTP2, ...BARE_NODE], grpc: true }),
  },
  n: {
    title: "10,000 idle streams over HTTP/2: memory that each adds",
    run: (bench) => measureIdleStreams(bench, "n", HTTP2),
  },
} as const satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof SCENARIOS;

export const SCENARIO_NAMES = Object.keys(SCENARIOS).filter(isScenarioName);

export function isScenarioName(name: string): name is ScenarioName {
  return name in SCENARIOS;
}
