import { caddy } from "./peers/caddy.ts";
import { envoy } from "./peers/envoy.ts";
import { haproxy } from "./peers/haproxy.ts";
import { nginx } from "./peers/nginx.ts";
import { nodeStack } from "./peers/node-stack.ts";
import type { Peer } from "./peers/peer.ts";
import { sallyport } from "./peers/sallyport.ts";
import { traefik } from "./peers/traefik.ts";

/** All proxies that are compared. Sallyport comes first: all ratios are relative to it. */
export const PEERS = {
  sallyport: sallyport(1),
  "sallyport-2": sallyport(2),
  haproxy: haproxy(undefined),
  "haproxy-rs256": haproxy("RS256"),
  "haproxy-es256": haproxy("ES256"),
  envoy: envoy(undefined),
  "envoy-es256": envoy("ES256"),
  nginx,
  caddy,
  traefik,
  fastify: nodeStack("fastify.mjs", "@fastify/http-proxy + @fastify/jwt, cached", [
    "fastify",
    "@fastify/http-proxy",
    "@fastify/jwt",
  ]),
  express: nodeStack("express.mjs", "express + http-proxy-middleware + express-jwt", [
    "express",
    "http-proxy-middleware",
    "express-jwt",
  ]),
  "http-proxy-3": nodeStack("http-proxy-3.mjs", "http-proxy-3 by default + jose", [
    "http-proxy-3",
    "jose",
  ]),
  "node-http2-hello": nodeStack("http2-hello.mjs", "Node: `node:http2` says hello", [], {
    checks: undefined,
  }),
  "node-http2-proxy": nodeStack("http2-proxy.mjs", "Node: a bare `node:http2` proxy", [], {
    checks: undefined,
  }),
} as const satisfies Record<string, Peer>;

export type PeerName = keyof typeof PEERS;

export const PEER_NAMES = Object.keys(PEERS).filter(isPeerName);

export function isPeerName(name: string): name is PeerName {
  return name in PEERS;
}
