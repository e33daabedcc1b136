import type { PeerName } from "../peers.ts";
import type { FigureName } from "./figures.ts";
import type { Results, Row } from "./results.ts";
import { ratioOf, type Spread, spreadOf } from "./statistics.ts";

/** A performance target. Without `to`, the limit is in the figure's own unit; otherwise it is a ratio. */
interface Target {
  readonly what: string;
  readonly scenario: string;
  readonly variant: string;
  readonly figure: FigureName;
  /** Default: Sallyport with one worker. */
  readonly of?: PeerName;
  /** The other peer of the same variant, or the other variant of the same peer. */
  readonly to?: { readonly peer: PeerName } | { readonly variant: string };
  readonly limit: number;
}

export interface Verdict {
  readonly what: string;
  readonly limit: number;
  readonly reached: Spread | undefined;
  readonly word: "PASS" | "FAIL" | "no figure";
}

/** Creates a target for the CPU, relative to another peer. */
function cpu(scenario: string, variant: string, peer: PeerName, limit: number): Target {
  const what = `(${scenario}) ${variant}, CPU to ${peer}`;
  return { what, scenario, variant, figure: "cpu", to: { peer }, limit };
}

/** Creates a target for the p99 during other load, relative to its idle value. */
function among(variant: string, limit = 2): Target {
  const what = `(e) p99 among ${variant}, to idle`;
  return { what, scenario: "e", variant, figure: "p99", to: { variant: "idle" }, limit };
}

const workers = (variant: string): Target => ({
  ...cpu("h", variant, "sallyport", 1.1),
  what: `(h) ${variant}, CPU with 2 workers to 1`,
  of: "sallyport-2",
});

const transfer = (variant: string, peer: PeerName, limit: number): Target => ({
  what: `(d) ${variant}, CPU s/GB to ${peer}`,
  scenario: "d",
  variant,
  figure: "cpuPerGb",
  to: { peer },
  limit,
});

function absolute(
  scenario: string,
  variant: string,
  figure: FigureName,
  limit: number,
  unit: string,
): Target {
  return { what: `(${scenario}) ${variant}, ${unit}`, scenario, variant, figure, limit };
}

/** Creates a target for tail latency, relative to Envoy with cached tokens. */
function tail(scenario: string, variant: string, figure: "p99" | "p999", limit: number): Target {
  const word = figure === "p99" ? "p99" : "p99.9";
  const what = `(${scenario}) ${variant}, ${word} to envoy-es256`;
  return { what, scenario, variant, figure, to: { peer: "envoy-es256" }, limit };
}

const TARGETS: readonly Target[] = [
  cpu("a", "plain", "envoy-es256", 0.55),
  cpu("a", "TLS", "envoy-es256", 0.65),
  tail("a", "plain", "p99", 1.2),
  tail("a", "TLS", "p99", 1.2),
  tail("i", "plain, saturated", "p99", 1.2),
  tail("i", "TLS, saturated", "p99", 1.2),
  tail("i", "plain, 4000/s", "p99", 1.3),
  tail("i", "TLS, 4000/s", "p99", 1.3),
  tail("i", "plain, 1000/s", "p999", 1.3),
  tail("i", "TLS, 1000/s", "p999", 1.3),
  cpu("j", "full", "haproxy", 1.3),
  cpu("j", "resumed", "haproxy", 1.3),
  absolute("k", "TLS, after one request", "idle", 0.5, "CPU ms/s"),
  absolute("k", "TLS, after one request", "resident", 65, "resident MB"),
  cpu("l", "TLS", "caddy", 0.9),
  cpu("l", "TLS", "envoy", 1.3),
  cpu("m", "TLS", "caddy", 0.9),
  absolute("n", "calls, h2c to the backend", "perStream", 20, "KB"),
  absolute("n", "GETs, HTTP/1.1 to the backend", "perStream", 20, "KB"),
  cpu("a", "plain", "haproxy", 2),
  cpu("a", "TLS", "haproxy", 1.8),
  cpu("a", "TLS", "haproxy-rs256", 0.85),
  cpu("a", "TLS", "haproxy-es256", 0.42),
  cpu("a", "TLS", "caddy", 0.55),
  cpu("a", "plain", "fastify", 0.45),
  cpu("a", "TLS", "fastify", 0.45),
  cpu("a", "plain", "express", 0.1),
  cpu("a", "TLS", "express", 0.1),
  cpu("a", "plain", "http-proxy-3", 0.1),
  cpu("a", "TLS", "http-proxy-3", 0.1),
  absolute("a", "plain", "resident", 110, "resident MB"),
  absolute("a", "TLS", "resident", 105, "resident MB"),
  absolute("a", "TLS, 10000 cached tokens", "resident", 125, "resident MB"),
  cpu("b", "plain", "haproxy-es256", 1.3),
  cpu("b", "TLS", "haproxy-es256", 1.3),
  transfer("plain download", "caddy", 1.2),
  transfer("plain upload", "caddy", 1.2),
  transfer("TLS download", "caddy", 1.2),
  transfer("TLS upload", "caddy", 1.2),
  transfer("TLS download", "haproxy", 1.5),
  among("20 logins/s"),
  among("2000 garbage tokens/s"),
  among("2000 forged signatures/s"),
  among("3500 new forged signatures/s", 3),
  among("500 handshakes/s", 3),
  absolute("f", "TLS keep-alive", "perConnection", 50, "KB"),
  absolute("f", "TLS WebSocket", "perConnection", 90, "KB"),
  absolute("g", "installed for production", "ready", 180, "ms to ready"),
  absolute("g", "installed for production", "resident", 65, "resident MB"),
  absolute("g", "installed for production", "installed", 25, "MB installed"),
  workers("plain"),
  workers("TLS"),
];

/** Judges all targets, by the median. */
export function judge({ rows }: Pick<Results, "rows">): readonly Verdict[] {
  return TARGETS.map((target) => {
    const { what, limit } = target;
    const reached = reachedBy(target, rows);
    if (reached === undefined) return { what, limit, reached, word: "no figure" };
    return { what, limit, reached, word: reached.median <= limit ? "PASS" : "FAIL" };
  });
}

function reachedBy(target: Target, rows: readonly Row[]): Spread | undefined {
  const { scenario, variant, figure, of = "sallyport", to } = target;
  const find = (variant: string, peer: PeerName): readonly number[] =>
    rows.find((row) => row.scenario === scenario && row.variant === variant && row.peer === peer)
      ?.rounds[figure] ?? [];
  const own = find(variant, of);
  if (to === undefined) return spreadOf(own);
  return ratioOf(own, "peer" in to ? find(variant, to.peer) : find(to.variant, of));
}
