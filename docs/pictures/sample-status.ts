import type {
  Dependency,
  RecentMinute,
  Status,
  StatusRefusal,
  StatusRoute,
} from "../../src/core/status.ts";

const NOW = Date.UTC(2026, 10, 22, 10, 0, 0);
const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

/** Always the same numbers that look like traffic. */
function wave(index: number, most: number, shift: number): number {
  const value = Math.sin((index + shift) * 0.7) + Math.sin((index + shift) * 1.9) / 2;
  return Math.max(0, Math.round((value + 0.6) * (most / 2)));
}

function minuteOf(index: number): RecentMinute {
  const attack = index > 19 && index < 25 ? 60 - Math.abs(22 - index) * 18 : 0;
  const nonzero = (counts: Record<string, number>): Record<string, number> =>
    Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  return {
    at: NOW - (29 - index) * MINUTE_MS,
    logins: nonzero({
      success: wave(index, 14, 3),
      bad_credentials: wave(index, 3, 9) + attack,
      throttled: Math.max(0, attack - 20),
    }),
    refusals: nonzero({
      missing: wave(index, 18, 1),
      expired: wave(index, 7, 5),
      forbidden: wave(index, 4, 8),
      bad_credentials: wave(index, 3, 9) + attack,
      throttled: Math.max(0, attack - 20),
      upstream_busy: index === 12 ? 9 : 0,
      ambiguous_path: index === 6 || index === 21 ? 2 : 0,
      tls_handshake: index % 11 === 4 ? 1 : 0,
    }),
  };
}

function route(name: string, path: string, access: string, ...counts: number[]): StatusRoute {
  const [requests = 0, clientErrors = 0, serverErrors = 0] = counts;
  return {
    name,
    path,
    access,
    requests,
    clientErrors,
    serverErrors,
    hosts: name === "orders" ? ["api.example.com"] : undefined,
    methods: name === "docs" ? ["GET"] : undefined,
    upstream: name === "orders" ? "orders" : "app",
    latency: { p50: 4 + name.length, p99: 30 + 7 * name.length },
  };
}

function target(address: string, reachable: boolean, state: string, oldestMs = 0) {
  const latency = reachable ? { p50: 3.4, p99: 27 } : { p50: undefined, p99: undefined };
  return { address, reachable, state, oldestMs, latency };
}

function dependency(
  kind: Dependency["kind"],
  name: string,
  state: Dependency["state"],
  words: string,
  forMs?: number,
): Dependency {
  return { kind, name, state, words, since: forMs === undefined ? undefined : NOW - forMs };
}

function refusal(index: number, changes: Partial<StatusRefusal>): StatusRefusal {
  return {
    at: NOW - index * 7_000,
    id: 4_102 - index,
    requestId: `r-${4_102 - index}`,
    client: "203.0.113.7",
    method: "GET",
    host: "api.example.com",
    path: "/api/orders/17",
    route: "orders",
    status: 401,
    reason: "expired",
    subject: undefined,
    protocol: "HTTP/1.1",
    explanation: {
      verdict: {
        outcome: "refused",
        status: 401,
        reason: "missing",
        route: "orders",
        detail: undefined,
        wouldDeny: undefined,
      },
      routes: [
        {
          name: "orders",
          hosts: ["api.example.com"],
          path: "/api/orders",
          methods: undefined,
          result: "taken",
          misfits: [],
        },
      ],
      notes: [],
      access: "token and one group of sales,admin",
      command:
        "sallyport explain --url https://api.example.com/api/orders/17 --client 203.0.113.7 --token-file FILE",
    },
    ...changes,
  };
}

const CONFIG = "/etc/sallyport/config.yaml";

/** A status with something in every section, for pictures and tests. */
export const SAMPLE_STATUS: Status = {
  version: "0.1.0",
  node: "26.10.0",
  host: "orders-7d9f",
  pid: 1,
  now: NOW,
  startedAt: NOW - 3 * DAY_MS - 4 * 60 * MINUTE_MS,
  state: "serving",
  ready: true,
  checks: [{ name: "draining", passed: true, state: "no" }],
  workers: { count: 2, alive: 2, answered: 2 },
  memory: { residentBytes: 153 * 1024 ** 2, bufferedBytes: 212 * 1024 },
  traffic: { requests: 1_284_907, inFlight: 14, webSockets: 3, verifiedTokens: 412 },
  routes: [
    route("orders", "/api/orders", "token and one group of sales,admin", 914_233, 1_204, 9),
    route("docs", "/docs/", "public", 20_411, 12, 0),
    route("everything", "/", "token", 350_263, 3_310, 0),
  ],
  upstreams: [
    {
      name: "orders",
      inFlight: 13,
      waiting: 0,
      targets: [
        target("https://orders-0.internal:9443", true, "ok", 12_000),
        target("https://orders-1.internal:9443", false, "ECONNREFUSED"),
      ],
    },
    {
      name: "app",
      inFlight: 1,
      waiting: 0,
      targets: [target("http://127.0.0.1:8080", true, "ok")],
    },
  ],
  certificate: {
    subject: "CN=api.example.com",
    issuer: "CN=Example CA",
    names: "DNS:api.example.com",
    notAfter: NOW + 61 * DAY_MS,
  },
  keys: [
    {
      signs: "tokens",
      kid: "qN8jCtSsgdPSYYhN91xMdC7nX",
      algorithm: "ES256",
      state: "published",
      file: "2026-11-22.pem",
      madeAt: NOW - 600_000,
      verifiesUntil: undefined,
    },
    {
      signs: "tokens",
      kid: "KIFO5Y4zwE0aLYFMziP3YYhN9",
      algorithm: "ES256",
      state: "signing",
      file: "2026-08-24.pem",
      madeAt: NOW - 90 * DAY_MS,
      verifiesUntil: NOW + 6 * DAY_MS,
    },
  ],
  dependencies: [
    dependency("user store", "ldap", "good", "answers"),
    dependency("state server", "redis", "bad", "unavailable", 95_000),
    dependency("key set", "https://id.example.com", "good", "3 keys, 4m11s old"),
    dependency("files", "configuration and the files that it names", "good", "in force"),
    dependency("certificate", "served", "warn", "ends in 6d"),
  ],
  reload: {
    at: NOW - 42 * MINUTE_MS,
    successful: true,
    files: [CONFIG],
    problems: [],
    changes: [
      { key: "routes[0].require.groups.any", before: ["sales"], after: ["sales", "admin"] },
    ],
  },
  configuration: {
    hash: "oLxV0m4nqX2Yw0kTk5jv1rj1Zr9eOqv6b0m6yQ3ZQ1I",
    needRestart: [],
    values: [
      { key: "server.listen", value: "0.0.0.0:8443", origin: `${CONFIG}:2` },
      { key: "server.workers", value: 2, origin: "SALLYPORT_SERVER__WORKERS" },
      { key: "tokens.lifetime", value: "5h", origin: "default" },
    ],
  },
  minutes: Array.from({ length: 30 }, (_, index) => minuteOf(index)),
  refusals: [
    refusal(0, {}),
    refusal(1, { path: "/api/orders", method: "POST", status: 403, reason: "forbidden" }),
    refusal(3, { path: "/..%2f", status: 400, reason: "ambiguous_path", explanation: undefined }),
  ],
};
