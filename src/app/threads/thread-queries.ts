import type { TargetState } from "../../upstream/pool/target.ts";
import type { Generations } from "../reload/generations.ts";
import type { RemoteOutage } from "../../core/remote-check.ts";
import { mergeOutages, type RemoteOutages } from "../gate/remote-checks.ts";
import { keysOf } from "../../lib/keys-of.ts";
import type { IssuerState } from "../../core/status.ts";
import type { TrustedKeys } from "../../tokens/trusted/trusted-keys.ts";

/** The parts of a thread that queries look at. */
interface QueriedThread {
  readonly generations: Generations;
  readonly outages: RemoteOutages;
  readonly trustedKeys: Pick<TrustedKeys, "states">;
}

/** A query that every thread answers. Answers are plain data, since they pass between threads. */
interface ThreadQuery<Answer> {
  /** Answers for one thread. */
  answer(thread: QueriedThread): Answer;
  /** Merges the answers of several threads; those that do not answer in time are missing. */
  merge(answers: readonly Answer[]): Answer;
  /** The page on the admin listener that shows the merged answer, and its message. */
  readonly page?: { readonly path: string; readonly message: string };
}

function query<Answer>(each: ThreadQuery<Answer>): ThreadQuery<Answer> {
  return each;
}

/** The queries of `Traffic.collect`. */
const QUERIES = {
  /** The state of each target. */
  targets: query<readonly TargetState[]>({
    answer: ({ generations }) => generations.targets(),
    merge: mergeTargets,
    page: { path: "/-/upstreams", message: "The targets of the upstreams" },
  }),
  /** The servers of checks that cannot be asked. */
  outages: query<readonly RemoteOutage[]>({
    answer: ({ outages }) => outages.list(),
    merge: mergeOutages,
  }),
  /** The trusted issuers. */
  issuers: query<readonly IssuerState[]>({
    answer: ({ trustedKeys }) => trustedKeys.states(),
    merge: mergeIssuers,
  }),
} as const;

/** The answers, by query. */
export type ThreadAnswers = {
  [Name in keyof typeof QUERIES]: ReturnType<(typeof QUERIES)[Name]["answer"]>;
};

export type QueryName = keyof ThreadAnswers;

const BY_NAME: { readonly [Name in QueryName]: ThreadQuery<ThreadAnswers[Name]> } = QUERIES;

/** The pages that show the answers. */
export const QUERY_PAGES = keysOf(BY_NAME).flatMap((name) => {
  const { page } = BY_NAME[name];
  return page === undefined ? [] : [{ name, ...page }];
});

/** Answers a query for one thread. */
export function answerIn<Name extends QueryName>(
  thread: QueriedThread,
  name: Name,
): ThreadAnswers[Name] {
  return BY_NAME[name].answer(thread);
}

/** An answer on its way between threads, under the name of its query. */
export type PostedAnswer = { [Name in QueryName]?: ThreadAnswers[Name] };

/** Puts an answer under the name of its query. */
export function posted<Name extends QueryName>(
  name: Name,
  answer: ThreadAnswers[Name],
): PostedAnswer {
  const reply: PostedAnswer = {};
  reply[name] = answer;
  return reply;
}

/** Merges the answers of all threads. Undefined stands for a thread that does not answer. */
export function mergeAnswers<Name extends QueryName>(
  name: Name,
  replies: readonly (PostedAnswer | undefined)[],
): ThreadAnswers[Name] {
  const answers = replies.map((reply) => reply?.[name]).filter((answer) => answer !== undefined);
  return BY_NAME[name].merge(answers);
}

/** Merges the targets of several threads: each gets its worst state in any thread, and the requests of all. */
function mergeTargets(ofThreads: readonly (readonly TargetState[])[]): TargetState[] {
  const found = new Map<string, TargetState>();
  for (const state of ofThreads.flat()) {
    const key = JSON.stringify([state.upstream, state.target]);
    const other = found.get(key);
    const inFlight = state.inFlight + (other?.inFlight ?? 0);
    const oldestMs = Math.max(state.oldestMs, other?.oldestMs ?? 0);
    const worse = other === undefined || other.state === "available" ? state : other;
    const negotiated = worse.negotiated ?? state.negotiated ?? other?.negotiated;
    found.set(key, { ...worse, negotiated, inFlight, oldestMs });
  }
  return [...found.values()];
}

/** Merges the issuers of all threads: an issuer is usable if no thread lacks its keys. */
export function mergeIssuers(ofThreads: readonly (readonly IssuerState[])[]): IssuerState[] {
  const worst = new Map<string, IssuerState>();
  for (const state of ofThreads.flat()) {
    const other = worst.get(state.issuer) ?? state;
    const { fetches = state.fetches } = other;
    worst.set(state.issuer, {
      issuer: state.issuer,
      ...(fetches && { fetches: worse(fetches, state.fetches ?? fetches) }),
      usable: state.usable && other.usable,
      keys: Math.min(state.keys, other.keys),
      readAt: earlier(state.readAt, other.readAt),
    });
  }
  return [...worst.values()];
}

function worse(one: Fetches, other: Fetches): Fetches {
  const since = [one, other].flatMap(({ failingSince }) => failingSince ?? []);
  const failingSince = since.length === 0 ? undefined : Math.min(...since);
  return { ...one, stale: one.stale || other.stale, failingSince };
}

type Fetches = NonNullable<IssuerState["fetches"]>;

/** Returns the earlier of two times, or undefined if either is undefined, which means never. */
function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Math.min(a, b);
}
