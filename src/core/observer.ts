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
import type { TokenCacheResult } from "./request/token-verifier.ts";
import type { MirrorResult } from "./route/route.ts";
import type { SharedOperation } from "./shared-parts.ts";

/** An action that is postponed: reading from an open connection, or accepting a new one. */
export type Postponed = (typeof POSTPONED)[number];
export const POSTPONED = ["read", "accept"] as const;

/**
 * Receives events of the request path. Its methods run on every request, so they must not block or throw, and must
 * allocate as little as possible. Label values come from closed sets.
 */
export interface Observer {
  requestStarted(): void;
  /** Follows `requestStarted` exactly once: writes the access line and updates the metrics. */
  requestFinished(outcome: Outcome): void;
  authDecided(result: AuthResult, reason: AuthReason): void;
  tokenCache(result: TokenCacheResult): void;
  tokenIssued(): void;
  loginFinished(result: LoginResult, seconds: number): void;
  /** A user store has answered, or failed to answer, whether a name and a password are valid. */
  storeAnswered(store: string, result: StoreResult, seconds: number): void;
  /** A login was verified against an outdated password hash. */
  outdatedHashUsed(store: string): void;
  /** The state server of all replicas was asked. A question that only waits for news has no duration. */
  sharedStateAsked(operation: SharedOperation, successful: boolean, seconds?: number): void;
  requestRefused(reason: RefusalReason): void;
  /** Connections must wait because their client used too much of the event loop's time. */
  connectionsPostponed(what: Postponed, connections: number): void;
  /** The head of a backend's response arrived after this many seconds. */
  upstreamAnswered(upstream: string, code: number, seconds: number): void;
  upstreamFailed(upstream: string, reason: UpstreamErrorReason): void;
  /** Another server was asked about a request. The duration is undefined if its answer was cached. */
  remoteChecked(
    check: RemoteCheckName,
    result: RemoteCheckResult,
    seconds: number | undefined,
  ): void;
  /** A request is sent to a backend again. */
  upstreamRetried(upstream: string): void;
  /** The result of copying a request to an upstream. */
  requestMirrored(upstream: string, result: MirrorResult): void;
  /** One of several targets is no longer used. */
  targetLeftOut(upstream: string): void;
  /** The host name of a target was looked up. @param found whether it has an address. */
  targetLookedUp(upstream: string, found: boolean): void;
  /** A running request or WebSocket was ended because its caller is no longer allowed. */
  streamEnded(reason: StreamEnd): void;
  webSocketOpened(route: string): void;
  webSocketClosed(route: string): void;
}
