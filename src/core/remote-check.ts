/** Asking another server about a request: who is calling, and whether the caller may. */

/** The kinds of checks that another server makes. */
export const REMOTE_CHECK_KINDS = [
  "introspection",
  "tokenReview",
  "subjectAccessReview",
  "http",
] as const;
type RemoteCheckKind = (typeof REMOTE_CHECK_KINDS)[number];

/** The `result` of `remote_checks_total`; `cached` for what was answered before. */
export const REMOTE_CHECK_RESULTS = ["allowed", "denied", "unavailable", "cached"] as const;
export type RemoteCheckResult = (typeof REMOTE_CHECK_RESULTS)[number];

/** A check as the configuration names it. */
export interface RemoteCheckName {
  readonly kind: RemoteCheckKind;
  readonly name: string;
}

/** Is told how a check goes. */
export interface RemoteCheckObserver {
  /** The answer was known. */
  cached(): void;
  /** The server has answered. */
  answered(allowed: boolean, seconds: number): void;
  /** It could not be asked, or gave no answer that can be used. The reason quotes nothing of either. */
  failed(reason: string, seconds: number): void;
}
