import { randomBytes, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Revocation } from "../../src/core/revocation.ts";
import type { AttemptEnd } from "../../src/core/shared-parts.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { NOOP_LOG } from "../../src/app/explanation/dry-run-gate.ts";
import { SharedState } from "../../src/shared/shared-state.ts";
import { stateServerAt } from "../../src/shared/state-server.ts";
import { RevocationList } from "../../src/tokens/revocation/revocation-list.ts";
import { type RedisServer, startRedis } from "../../test/real/redis-server.ts";
import { until } from "../../test/support/until.ts";

/** The costs of single operations for the state server or a replica. CPU in microseconds, memory and traffic in bytes. */
export interface Constants {
  readonly connectionBytes: number;
  /** An event that one replica publishes. */
  readonly tell: Cost;
  /** An answer with one event, for one replica. */
  readonly hear: Cost;
  /** One caller of a limit that is settled, in a batch of ten. */
  readonly settle: Cost;
  /** A replica without traffic, per second. */
  readonly idle: Cost;
  /** A replica that starts: two connections. */
  readonly start: Cost;
  /** Each event and each revocation that a starting replica reads. */
  readonly startEvent: Cost;
  readonly startRevocation: Cost;
  readonly eventBytes: number;
  readonly revocationBytes: number;
  /** In each thread of a replica. */
  readonly heapPerRevocation: number;
}

export interface Cost {
  readonly cpu: number;
  readonly sent: number;
}

const REPLICAS = 20;
const EVENTS = 300;
/** Longer than the pause of a replica between two answers. */
const APART_MS = 40;
const REVOCATIONS = 20_000;
const KEYS = 20_000;
const AT_ONCE = 10;
const STARTS = 20;
const IDLE_SECONDS = 10;

/** Measures with the product's own code and a separate server. Takes about a minute. */
export async function measureConstants(): Promise<Constants> {
  await using redis = await startRedis();
  const usage = usageOf(redis);
  const own = await costing(usage, 0)(IDLE_SECONDS * 1_000, () => pause(IDLE_SECONDS * 1_000));
  const costOf = costing(usage, own.cpu);
  const teller = await openReplica(redis);
  const tell = await costOf(EVENTS, () => tellEvents(teller, [teller]));
  const settle = await costOf(KEYS, () => settleKeys(teller));
  const alone = await usage();
  const others = await Promise.all(Array.from({ length: REPLICAS }, () => openReplica(redis)));
  const opened = await usage();
  const idle = await costOf(IDLE_SECONDS * (REPLICAS + 1), () => pause(IDLE_SECONDS * 1_000));
  const heard = await costOf(EVENTS, () => tellEvents(teller, [teller, ...others]));
  // They would also read what is measured for the starting replicas.
  await Promise.all(others.map(({ state }) => state.close()));
  await forgetEvents(redis);
  const start = await costOf(STARTS, () => startReplicas(redis));
  await teller.state.revoke(revocations());
  await until(async () => (await numberOf(redis, "ZCARD", "revocations")) >= REVOCATIONS, 120_000);
  const events = await numberOf(redis, "XLEN", "events");
  const eventBytes = (await numberOf(redis, "MEMORY", "USAGE", "events")) / events;
  const startWithAll = await costOf(STARTS, () => startReplicas(redis));
  await forgetEvents(redis);
  const startWithMany = await costOf(STARTS, () => startReplicas(redis));
  const constants = {
    connectionBytes: (opened.memory - alone.memory) / (2 * REPLICAS),
    tell,
    settle,
    idle,
    start,
    hear: each(minus(heard, tell), REPLICAS),
    startEvent: each(minus(startWithAll, startWithMany), events),
    startRevocation: each(minus(startWithMany, start), REVOCATIONS),
    eventBytes,
    revocationBytes: (await numberOf(redis, "MEMORY", "USAGE", "revocations")) / REVOCATIONS,
    heapPerRevocation: heapPerRevocation(),
  };
  await teller.state.close();
  return constants;
}

interface Replica {
  readonly state: SharedState;
  heard: number;
}

async function openReplica({ url }: RedisServer): Promise<Replica> {
  const state = new SharedState({
    place: { server: stateServerAt(url) },
    prefix: "sallyport:",
    timeout: 50,
    log: NOOP_LOG,
    clock: systemClock,
    observer: { sharedStateAsked: () => undefined },
  });
  const replica = { state, heard: 0 };
  const attemptEnded = (): void => void (replica.heard += 1);
  await state.begin({ attemptEnded, revoked: () => undefined }, () => []);
  return replica;
}

async function startReplicas(redis: RedisServer): Promise<void> {
  for (let count = 0; count < STARTS; count += 1) {
    const { state } = await openReplica(redis);
    await until(() => state.up, 60_000);
    await state.close();
  }
}

async function forgetEvents(redis: RedisServer): Promise<void> {
  await redis.command("XTRIM", "{sallyport:}events", "MAXLEN", "0");
}

/** Publishes events one by one, more slowly than a replica reads, so that each answer contains one. */
async function tellEvents(teller: Replica, all: readonly Replica[]): Promise<void> {
  const others = all.filter((replica) => replica !== teller);
  const wanted = others.map(({ heard }) => heard + EVENTS);
  for (let event = 0; event < EVENTS; event += 1) {
    teller.state.tell(attempt());
    await pause(APART_MS);
  }
  await until(() => others.every(({ heard }, at) => heard >= (wanted[at] ?? 0)), 60_000);
}

async function settleKeys({ state }: Replica): Promise<void> {
  for (let key = 0; key < KEYS; key += AT_ONCE) {
    const spent = Array.from({ length: AT_ONCE }, (_, at) => ({ key: `${key + at}`, costMs: 1 }));
    if ((await state.settleRates(spent)) === undefined)
      throw new Error("the server cannot be used");
  }
}

function attempt(): AttemptEnd {
  const digest = (): string => randomBytes(32).toString("base64url");
  const [account, pair, network] = [digest(), digest(), digest()];
  return { failed: true, known: false, account, pair, network };
}

function revocations(): Revocation[] {
  const until = Date.now() + 5 * 3_600_000;
  return Array.from({ length: REVOCATIONS }, () => ({
    kind: "token",
    name: randomUUID(),
    until,
  }));
}

function heapPerRevocation(): number {
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const list = new RevocationList();
  list.take({ added: revocations() });
  globalThis.gc?.();
  const bytes = process.memoryUsage().heapUsed - before;
  return bytes / list.size;
}

async function numberOf(redis: RedisServer, ...words: readonly string[]): Promise<number> {
  const last = words.length - 1;
  const named = words.map((word, at) => (at === last ? `{sallyport:}${word}` : word));
  return Number(await redis.command(...named));
}

interface Usage {
  readonly cpu: number;
  readonly sent: number;
  readonly memory: number;
}

/** Returns a function that reads what the server has used so far. */
function usageOf(redis: RedisServer): () => Promise<Usage> {
  return async () => {
    const info = String(await redis.command("INFO", "all"));
    const field = (name: string): number =>
      Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1] ?? Number.NaN);
    return {
      cpu: (field("used_cpu_user") + field("used_cpu_sys")) * 1e6,
      sent: field("total_net_output_bytes"),
      memory: field("used_memory"),
    };
  };
}

/** Returns a function that measures what the server spends on work, without its idle cost in the same time. */
function costing(usage: () => Promise<Usage>, ownPerMs: number) {
  return async (times: number, work: () => Promise<unknown>): Promise<Cost> => {
    const before = await usage();
    const began = performance.now();
    await work();
    const own = (performance.now() - began) * ownPerMs;
    const spent = minus(await usage(), before);
    return each({ ...spent, cpu: spent.cpu - own }, times);
  };
}

function minus(more: Cost, less: Cost): Cost {
  return { cpu: more.cpu - less.cpu, sent: more.sent - less.sent };
}

function each({ cpu, sent }: Cost, times: number): Cost {
  return { cpu: cpu / times, sent: sent / times };
}
