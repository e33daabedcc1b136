import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { Configuration } from "../../config/configuration.ts";
import { GateError } from "../../core/request/errors.ts";
import type { IssuerState, RecentEvents, Reloaded } from "../../core/status.ts";
import type { LoginService, SignIns } from "../../core/login.ts";
import type { PublishRevocations, RevocationNews } from "../../core/revocation.ts";
import type {
  RememberProof,
  SettleConcurrency,
  SettleRates,
  SharedLimits,
} from "../../core/shared-parts.ts";
import { systemClock, timeOfAllThreads } from "../../lib/clock.ts";
import { createResponseIds } from "../../lib/http/response-ids.ts";
import { KeyedSemaphore, QueueFullError } from "../../lib/async/keyed-semaphore.ts";
import { type SharedCounts, ThreadCounts } from "../../lib/async/shared-counts.ts";
import { expose, NoReplyError, RpcClient } from "../../core/thread-rpc.ts";
import { attachInFlight } from "../../policy/concurrency/concurrency-limiter.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";
import { type ProofMemory, UsedProofs } from "../../tokens/proofs/proof-memory.ts";
import { attachSharedTimes, type SharedTimes } from "../../policy/rates/rate-limiter.ts";
import { MAX_WAITING } from "../../observe/log/log-sink.ts";
import type { KeyRing } from "../../tokens/keys/key-ring.ts";
import { OwnKeys } from "../../tokens/keys/own-keys.ts";
import { RevocationList } from "../../tokens/revocation/revocation-list.ts";
import { startForgetting } from "../../tokens/revocation/revocation-service.ts";
import { openLedger } from "../client-warnings.ts";
import type { GateFiles } from "../from-files.ts";
import { seriesOf, type ServerTls } from "../gate/from-configuration.ts";
import type { KeyRings } from "./thread-life.ts";
import { LogBacklog, postedSink } from "./log-backlog.ts";
import { beat } from "./pulse.ts";
import { createObservation, type Observation } from "../observation.ts";
import { ReloadStates } from "../reload/reload-states.ts";
import { collectStart } from "./thread-memory.ts";
import { surviveErrors } from "../survive-errors.ts";
import type { ThreadState } from "./thread-state.ts";
import { startTraffic, type Traffic, type TrafficChange } from "../traffic.ts";
import type { Change } from "../../core/change.ts";

type ThreadChange = ReturnType<typeof threadChange>;

/**
 * Returns the functions that change the configuration of this thread. The main thread decides whether a prepared change
 * is committed, so that either all threads change or none.
 *
 * @param committed called just before a change is put in force.
 */
function threadChange(traffic: Promise<Traffic>, committed: (changed: TrafficChange) => void) {
  let prepared: Promise<(Change & { readonly changed: TrafficChange }) | undefined> | undefined;
  /** Returns the prepared change, but only once. */
  const take = () => {
    const taken = prepared;
    prepared = undefined;
    return taken;
  };
  return {
    /** Prepares a change. Rejects if this is not possible. */
    async prepare(changed: TrafficChange): Promise<void> {
      const running = await traffic;
      const preparing = running.prepare(changed).then((change) => ({ ...change, changed }));
      prepared = preparing.catch(() => undefined);
      await preparing;
    },
    /** Puts the prepared change in force; does nothing if there is none. */
    async commit(): Promise<void> {
      const change = await take();
      if (change === undefined) return;
      committed(change.changed);
      await change.commit();
    },
    async rollback(): Promise<void> {
      const change = await take();
      change?.rollback();
    },
  };
}

/** The index and the port of the thread, and the memory that it shares with others. */
export interface ThreadPlacement {
  readonly index: number;
  readonly count: number;
  readonly port: number;
  /** Shared memory in which all threads count their connections. */
  readonly connections: SharedCounts;
  /** Shared memory in which all threads count requests in flight, for routes that limit them. */
  readonly inFlight: SharedCounts;
  /** Shared memory in which all threads count the use of rate limits. */
  readonly arrivalTimes: SharedTimes;
  /** Shared memory in which all threads remember DPoP proofs. */
  readonly proofs: ProofMemory;
  /** Shared memory in which all threads record how much time clients use. */
  readonly usage: SharedArrayBuffer;
  /** Shared memory in which all threads count the log lines that wait for the main thread. */
  readonly backlog: SharedArrayBuffer;
}

/** The start options of a traffic thread. */
export interface ThreadData extends ThreadPlacement {
  readonly configuration: Configuration;
  readonly files: GateFiles;
  readonly version: string;
  readonly rings: KeyRings;
  /** The revocations at its start. */
  readonly revoked: readonly RevocationNews[];
  readonly tls: ServerTls;
  readonly pulse: SharedArrayBuffer;
  /** Shared memory in which the threads count the bytes buffered for clients; this thread's row is `index + 1`. */
  readonly weights: SharedArrayBuffer;
}

/** The functions of the main thread that a traffic thread may call. */
export type MainApi = {
  readonly logIn: LoginService["logIn"];
  readonly beginSignIn: SignIns["beginSignIn"];
  readonly finishSignIn: SignIns["finishSignIn"];
  readonly signOutUrl: SignIns["signOutUrl"];
  readonly endSessions: SignIns["endSessions"];
  readonly publish: PublishRevocations;
  readonly settleRates: SettleRates;
  readonly settleConcurrency: SettleConcurrency;
  readonly rememberProof: RememberProof;
  /** Reports that the thread accepts clients from now on. */
  readonly listening: (address: string, port: number) => void;
  /** Reports whether all files that the thread rereads itself are valid. */
  readonly reloaded: Reloaded;
  /** Reports all trusted issuers whenever the keys of one have changed. */
  readonly issuers: (states: readonly IssuerState[]) => void;
  /** Passes on lines of the log, and their total length in bytes. */
  readonly log: (lines: readonly string[], bytes: number) => void;
};

/** The functions of a traffic thread. */
export type ThreadApi = ReturnType<typeof threadApi>;

/** Timeout of a login in the main thread, in milliseconds. */
const LOGIN_MS = 300_000;
/** Maximum number of logins on their way to and from the main thread, in addition to those that may wait there. */
const POSTED_LOGINS = 256;
/** The same for sign-ins at one provider, which all wait if it hangs. */
const POSTED_SIGN_INS = 256;

/**
 * Returns the maximum number of logins of this thread that may wait in the main thread: in its two groups of queues per
 * name, and for a hashing thread.
 */
function maxLogins({ login }: Configuration): number {
  return login.hashing.concurrency + 3 * login.hashing.queue + POSTED_LOGINS;
}

/** Returns a function that rejects with a `GateError` if too many calls of a kind wait already, or if one gets no reply. */
function boundedCalls(most: () => number, ...refusal: ConstructorParameters<typeof GateError>) {
  const waiting = new KeyedSemaphore(0);
  return <Answer>(kind: string, call: () => Promise<Answer>): Promise<Answer> =>
    waiting.run({ key: kind, group: "" }, most, call).catch((error: unknown) => {
      if (!(error instanceof NoReplyError || error instanceof QueueFullError)) throw error;
      throw new GateError(...refusal);
    });
}

/** Returns a service that runs logins in the main thread, which has the throttle and the hashing threads. @param most that may wait there. */
function remoteLogins(main: RpcClient<MainApi>, most: () => number): LoginService {
  const details = { reason: "queue_full", retryAfter: 1 } as const;
  const bounded = boundedCalls(most, "login_queue_full", details);
  return { logIn: (...attempt) => bounded("logIn", () => main.call("logIn", ...attempt)) };
}

/** Returns a service that signs people in through the main thread, which asks the providers. */
function remoteSignIns(main: RpcClient<MainApi>): SignIns {
  const bounded = boundedCalls(() => POSTED_SIGN_INS, "provider_unavailable", { retryAfter: 1 });
  return {
    beginSignIn: (name, begun) => bounded(name, () => main.call("beginSignIn", name, begun)),
    finishSignIn: (name, back) => bounded(name, () => main.call("finishSignIn", name, back)),
    signOutUrl: (name, returnTo) =>
      bounded(name, () => main.call("signOutUrl", name, returnTo)).catch(() => undefined),
    endSessions: (name, token) => bounded(name, () => main.call("endSessions", name, token)),
  };
}

/** Returns functions that settle limits through the main thread, since only it is connected to the state server. */
function settlingThrough(main: RpcClient<MainApi>, { shared }: Configuration): SharedLimits {
  const shares = new Set(shared?.share);
  return {
    ...(shares.has("rateLimits") && { settleRates: (each) => main.call("settleRates", each) }),
    ...(shares.has("concurrency") && {
      settleConcurrency: (each) => main.call("settleConcurrency", each),
    }),
    ...(shares.has("proofs") && {
      rememberProof: (name, forMs) =>
        withTimeout(
          main.call("rememberProof", name, forMs).catch(() => undefined),
          shared?.timeout ?? 0,
          undefined,
        ),
    }),
  };
}

/** Attaches the counts that all threads share. */
function countsOf({ connections, inFlight, arrivalTimes, proofs, index }: ThreadData) {
  return {
    connections: new ThreadCounts(connections, index),
    inFlight: attachInFlight(inFlight, index),
    arrivalTimes: attachSharedTimes(arrivalTimes, timeOfAllThreads()),
    usedProofs: new UsedProofs(proofs),
  };
}

interface ThreadParts extends Pick<Observation, "metrics" | "recent" | "sink"> {
  readonly traffic: Promise<Traffic>;
  readonly changes: ThreadChange;
  readonly keys: Readonly<Record<keyof KeyRings, OwnKeys>>;
  readonly revocations: RevocationList;
  close(): void;
}

function threadApi(parts: ThreadParts) {
  const { traffic, changes, metrics, sink, keys, revocations, close } = parts;
  return {
    ...changes,
    keys: (name: keyof KeyRings, ring: KeyRing) => keys[name].replace(ring),
    revoked: (news: RevocationNews) => revocations.take(news),
    scrape: (): Promise<readonly object[]> => metrics.json(),
    state: async (): Promise<ThreadState> => (await traffic).state(),
    recent: (): RecentEvents => parts.recent.events(),
    /** Must be the last call. Also returns the metrics, which cannot be fetched afterwards. */
    async drain(): Promise<{ readonly finished: boolean; readonly metrics: readonly object[] }> {
      const finished = await (await traffic).drain();
      const counted = await metrics.json();
      sink.flush();
      setImmediate(close);
      return { finished, metrics: counted };
    },
  };
}

async function runThread(data: ThreadData, port: MessagePort): Promise<void> {
  const { files, version, rings, tls, index, count, pulse, weights } = data;
  let { configuration } = data;
  beat(pulse);
  const clock = systemClock;
  const keys = {
    keys: new OwnKeys(rings.keys, clock),
    assertionKeys: new OwnKeys(rings.assertionKeys, clock),
  };
  const revocations = new RevocationList();
  for (const news of data.revoked) revocations.take(news);
  startForgetting(revocations, clock);
  // Logins and sign-ins have limits of their own: what waits long must not keep revocations out.
  const main = new RpcClient<MainApi>(port, { timeoutMs: LOGIN_MS, maxPending: () => Infinity });
  const backlog = new LogBacklog(data.backlog, index, MAX_WAITING);
  const sink = postedSink((lines, bytes) => main.notify("log", lines, bytes), backlog);
  const observation = createObservation(configuration, sink, { version, process: false });
  const { log, metrics, observer } = observation;
  const reloads = new ReloadStates(clock.now, (problems) => main.notify("reloaded", problems));
  const shared = { memory: weights, row: index + 1 };
  const buffered = openLedger({ configuration, shared, observer, clock, log });
  metrics.gauges.bufferedBytes = () => buffered.bytes;
  const starting = startTraffic({
    configuration,
    files,
    version,
    ...keys,
    tls,
    reloads,
    clock,
    log,
    observer,
    buffered,
    port: data.port,
    usage: { memory: data.usage, row: index },
    logins: remoteLogins(main, () => maxLogins(configuration)),
    signIns: remoteSignIns(main),
    revocations,
    ...settlingThrough(main, configuration),
    publish: (each) => main.call("publish", each),
    shared: true,
    issuersChanged: (states) => main.notify("issuers", states),
    ...countsOf(data),
    nextId: createResponseIds(clock.now(), index, count + 1),
  });
  const changes = threadChange(starting, (changed) => {
    ({ configuration } = changed);
    metrics.add(seriesOf(configuration));
  });
  const parts = { ...observation, traffic: starting, changes, keys, revocations };
  expose(port, threadApi({ ...parts, close: () => port.close() }));
  const traffic = await starting;
  surviveErrors(log);
  metrics.gauges.tokenCacheEntries = traffic.tokenCacheEntries;
  metrics.gauges.upstreamLoad = traffic.upstreamLoad;
  metrics.gauges.issuers = () => traffic.issuers();
  main.notify("listening", traffic.address, traffic.port);
  collectStart();
}

const data: ThreadData = workerData;
if (parentPort !== null) await runThread(data, parentPort);
