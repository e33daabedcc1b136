import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { NOOP_LOG } from "../../src/app/explanation/dry-run-gate.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { TIMING, TrustedKeyAddress } from "../../src/tokens/trusted/trusted-key-address.ts";
import { signingPair } from "../../test/support/foreign-keys.ts";
import { listeningPort } from "../../test/support/listening-port.ts";

/** How replicas that start at the same moment fetch the keys of an issuer. */
export interface KeySetFetches {
  /** The fetches of one replica in the lifetime of its keys. */
  readonly perLife: number;
  /** The most fetches within a hundredth of a lifetime, as a fraction of the replicas: in the first two lifetimes, and from the sixth. */
  readonly busiestAtFirst: number;
  readonly busiestLater: number;
}

const REPLICAS = 300;
/** A short lifetime of keys, in milliseconds. Everything else is proportional to it, like in the product. */
const LIFE_MS = 4_000;
const LIVES = 12;

/** Measures many instances of the product's own client with one server. Takes less than a minute. */
export async function measureKeySetFetches(): Promise<KeySetFetches> {
  const fetches: number[] = [];
  const keys = JSON.stringify({ keys: [signingPair("one").jwk] });
  const server = createServer((_request, response) => {
    fetches.push(performance.now());
    response.setHeader("Cache-Control", "max-age=1");
    response.end(keys);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${listeningPort(server)}/jwks.json`;
  const issuer = "https://id.example.com";
  const algorithms = ["ES256"] as const;
  const trusted = { issuer, audience: "orders", algorithms, clockSkew: 0, jwks: { url } };
  const timing = { ...TIMING, life: { min: LIFE_MS, usual: LIFE_MS, max: LIFE_MS } };
  const context = { clock: systemClock, log: NOOP_LOG, changed: () => undefined };
  const began = performance.now();
  const replicas = Array.from(
    { length: REPLICAS },
    () => new TrustedKeyAddress({ url }, trusted, context, timing),
  );
  await pause(LIVES * LIFE_MS);
  for (const replica of replicas) replica.close();
  server.close();
  server.closeAllConnections();
  const lives = fetches.map((at) => (at - began) / LIFE_MS);
  return {
    perLife: lives.filter((at) => at >= 2).length / REPLICAS / (LIVES - 2),
    busiestAtFirst: busiest(lives.filter((at) => at >= 0.5 && at < 2)),
    busiestLater: busiest(lives.filter((at) => at >= 5)),
  };
}

/** Returns the largest fraction of the replicas that fetches within a hundredth of a lifetime. */
function busiest(lives: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const at of lives) {
    const slot = Math.floor(at * 100);
    counts.set(slot, (counts.get(slot) ?? 0) + 1);
  }
  return Math.max(0, ...counts.values()) / REPLICAS;
}
