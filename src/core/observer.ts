import type { RemoteCheckName, RemoteCheckResult } from "./remote-check.ts";
import type {
  AuthReason,
  AuthResult,
  LoginResult,
  Outcome,
  RefusalReason,
  StoreResult,
  StreamEnd,
  UpstreamErrorReason,
} from "./request/outcome.ts";
import type { MirrorResult } from "./route/mirror.ts";
import type { SharedOperation } from "./shared-parts.ts";

/** What is postponed: reading from an open connection, or accepting a new one. */
export type Postponed = (typeof POSTPONED)[number];
export const POSTPONED = ["read", "accept"] as const;

/**
 * Receives events of the request path. Runs on every request: no method blocks, throws, or allocates more than it
 * must. Label values come from closed sets.
 */
export interface Observer {
  requestStarted(): void;
  /** Ends what `requestStarted` began, exactly once: writes the access line and updates the metrics. */
  requestFinished(outcome: Outcome): void;
  authDecided(result: AuthResult, reason: AuthReason): void;
  tokenCache(result: "hit" | "miss"): void;
  tokenIssued(): void;
  loginFinished(result: LoginResult, seconds: number): void;
  /** A user store was asked for a name and a password. */
  storeAnswered(store: string, result: StoreResult, seconds: number): void;
  /** A login was verified against a hash that should be made anew. */
  outdatedHashUsed(store: string): void;
  /** The state server of all replicas was asked; without a duration, only for news. */
  sharedStateAsked(operation: SharedOperation, successful: boolean, seconds?: number): void;
  requestRefused(reason: RefusalReason): void;
  /** Connections have to wait because their client used too much of the event loop's time. */
  connectionsPostponed(what: Postponed, connections: number): void;
  /** The head of a backend's response arrived after this many seconds. */
  upstreamAnswered(upstream: string, code: number, seconds: number): void;
  upstreamFailed(upstream: string, reason: UpstreamErrorReason): void;
  /** Another server was asked about a request; the seconds are undefined where its answer was remembered. */
  remoteChecked(
    check: RemoteCheckName,
    result: RemoteCheckResult,
    seconds: number | undefined,
  ): void;
  /** A request is sent to a backend again. */
  upstreamRetried(upstream: string): void;
  /** What became of the copy of a request for an upstream. */
  requestMirrored(upstream: string, result: MirrorResult): void;
  /** A target of several is no longer used. */
  targetLeftOut(upstream: string): void;
  /** The name of a target was looked up. @param found whether it has an address. */
  targetLookedUp(upstream: string, found: boolean): void;
  /** Something that ran was ended, since its caller may no longer. */
  streamEnded(reason: StreamEnd): void;
  webSocketOpened(route: string): void;
  webSocketClosed(route: string): void;
}
