import { PROBE } from "../victim/configuration.ts";
import { type Attack, addresses, CLOGGED, request } from "./attack.ts";

/** More than a neighbour's address may have. */
const CONNECTIONS = 20;

function neighbours(
  name: string,
  title: string,
  path: string,
  { from = 1, long = false, times = -1 } = {},
): Attack {
  return {
    name,
    title,
    long,
    orders: ({ adminPort }) => [
      {
        port: adminPort,
        tls: false,
        ...CLOGGED,
        reconnect: true,
        addresses: addresses(from),
        connections: from * CONNECTIONS,
        steps: [{ send: request(path, { bytes: 400 }), times }],
      },
    ],
    bites: ({ opened, sent }) => opened >= from * 4 && sent > opened * 400,
  };
}

/** Neighbours in the cluster, on the admin listener, which is plain HTTP. */
export const ADMIN: readonly Attack[] = [
  neighbours("admin-livez", "GET /livez pipelined and unread, one neighbour", "/livez"),
  neighbours("admin-livez-wide", "the same from 64 neighbours", "/livez", { from: 64, long: true }),
  neighbours("admin-metrics", "GET /metrics pipelined and unread, 16 neighbours", "/metrics", {
    from: 16,
  }),
  neighbours("admin-probes", "a probe of a slow backend pipelined, 4 neighbours", PROBE, {
    from: 4,
  }),
  {
    name: "admin-half",
    title: "half a head of 60 KB on connections begun anew, 64 neighbours",
    orders: ({ adminPort }) => [
      {
        port: adminPort,
        tls: false,
        reconnect: true,
        addresses: addresses(64),
        connections: 64 * CONNECTIONS,
        steps: [{ send: request("/livez", { bytes: 60_000 }).slice(0, -4) }],
      },
    ],
    bites: ({ opened, sent }) => opened >= 256 && sent > 1e6,
  },
];
