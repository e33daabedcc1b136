import type { Constants } from "./constants.ts";

/** A deployment and the behaviour of its users. */
export interface Deployment {
  readonly replicas: number;
  readonly users: number;
  /** The lifetime of a token in seconds; each user logs in once in this time. */
  readonly lifetime: number;
  /** Logins that fail, and users that log out, as fractions of all logins. */
  readonly failing: number;
  readonly loggingOut: number;
  /** Requests per second of all users to routes with a limit, and the number of users that are active at a time. */
  readonly limited: number;
  readonly active: number;
}

/** The pace of a replica, in milliseconds: the constants of `src/shared` and of `src/policy/rates/rate-limiter.ts`. */
export interface Pace {
  readonly restMs: number;
  readonly settleMs: number;
}

export interface Load {
  readonly connections: number;
  readonly eventsPerSecond: number;
  /** Answers with events, to all replicas. */
  readonly answersPerSecond: number;
  readonly settledPerSecond: number;
  /** The fraction of one core of the state server. */
  readonly cpu: number;
  /** Bytes per second from the state server. */
  readonly sent: number;
  readonly serverBytes: number;
  readonly revocations: number;
  readonly replicaBytes: number;
}

const SECONDS = 20;

/** Simulates some seconds of a deployment: when events occur, and when each replica reads them. */
export function simulate(deployment: Deployment, constants: Constants, pace: Pace): Load {
  const { replicas, users, lifetime, failing, loggingOut } = deployment;
  const logins = users / lifetime;
  // Of a million users, the networks of all but 10,000 are news to the other replicas when they log in.
  const eventsPerSecond = logins * (1 + failing + loggingOut);
  const answers = replicas * answersOfOne(arrivals(eventsPerSecond), pace.restMs);
  const settled = settledPerSecond(deployment, pace.settleMs);
  const { tell, hear, settle, idle } = constants;
  const cpu =
    eventsPerSecond * tell.cpu + answers * hear.cpu + settled * settle.cpu + replicas * idle.cpu;
  // However many events an answer contains, each event is sent to each replica.
  const sent =
    eventsPerSecond * replicas * hear.sent + settled * settle.sent + replicas * idle.sent;
  const revocations = logins * loggingOut * lifetime;
  return {
    connections: 2 * replicas,
    eventsPerSecond,
    answersPerSecond: answers,
    settledPerSecond: settled,
    cpu: cpu / 1e6,
    sent,
    revocations,
    serverBytes:
      2 * replicas * constants.connectionBytes +
      KEPT_EVENTS * constants.eventBytes +
      revocations * constants.revocationBytes,
    replicaBytes: revocations * constants.heapPerRevocation,
  };
}

/** The number of events that the state server retains. */
export const KEPT_EVENTS = 10_000;

/** Returns the times of independent events, in milliseconds. */
function arrivals(perSecond: number): readonly number[] {
  const times: number[] = [];
  for (let at = 0; at < SECONDS * 1_000; at += (-Math.log(1 - Math.random()) * 1_000) / perSecond) {
    times.push(at);
  }
  return times;
}

/** Returns the answers per second to one replica, which reads all events so far, and then pauses. */
function answersOfOne(times: readonly number[], restMs: number): number {
  let answers = 0;
  let readAt = -Infinity;
  for (const at of times) {
    // It was part of the last answer.
    if (at <= readAt) continue;
    answers += 1;
    readAt = Math.max(at, readAt + restMs);
  }
  return answers / SECONDS;
}

/** Returns the callers settled per second: each once per round at each replica to which it has sent a request since. */
function settledPerSecond({ replicas, limited, active }: Deployment, settleMs: number): number {
  const rounds = 1_000 / settleMs;
  const perRound = limited / rounds / replicas;
  // Almost all requests of one round at one replica come from different callers.
  const callers = active * (1 - (1 - 1 / active) ** perRound);
  return callers * rounds * replicas;
}

/** Returns the seconds until all replicas are back after an outage, and how many connect in the busiest 100 ms. @param read by each replica. */
export function herd(
  { replicas }: Deployment,
  { start, startEvent, startRevocation }: Constants,
  read: { readonly revocations: number; readonly events: number },
): { readonly seconds: number; readonly busiest: number } {
  const { revocations, events } = read;
  const costMs = (start.cpu + revocations * startRevocation.cpu + events * startEvent.cpu) / 1_000;
  // During the outage all have reached the longest wait: 2 s, with a jitter of half of it in both directions.
  const tries = Array.from({ length: replicas }, () => 1_000 + Math.random() * 2_000);
  const slots = new Map<number, number>();
  for (const at of tries)
    slots.set(Math.floor(at / 100), (slots.get(Math.floor(at / 100)) ?? 0) + 1);
  let free = 0;
  for (const at of tries.toSorted((one, other) => one - other)) free = Math.max(free, at) + costMs;
  return { seconds: free / 1_000, busiest: Math.max(...slots.values()) };
}
