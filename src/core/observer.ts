import type {
  AuthReason,
  AuthResult,
  LoginResult,
  Outcome,
  Rejection,
  UpstreamErrorReason,
} from "./outcome.ts";

/**
 * What the request path tells to whoever measures. Called on every request: no call blocks, allocates more than it must
 * or throws. Label values come from closed sets.
 */
export interface Observer {
  requestStarted(): void;
  /** The one call that ends what `requestStarted` began: writes the log line and counts. */
  requestFinished(outcome: Outcome): void;
  authDecided(result: AuthResult, reason: AuthReason): void;
  tokenCache(result: "hit" | "miss"): void;
  tokenIssued(): void;
  loginFinished(result: LoginResult, seconds: number): void;
  rejected(reason: Rejection): void;
  /** The head of a backend's answer arrived after so many seconds. */
  upstreamAnswered(upstream: string, code: number, seconds: number): void;
  upstreamFailed(upstream: string, reason: UpstreamErrorReason): void;
  webSocketOpened(route: string): void;
  webSocketClosed(route: string): void;
}
