import {
  REJECTIONS,
  type AuthReason,
  type LoginResult,
  type UpstreamErrorReason,
} from "../core/outcome.ts";

/**
 * The closed sets of label values. Written as records, so that a word added to `core/outcome.ts` does not compile until
 * it is listed here too.
 */
const denials = {
  missing: true,
  malformed: true,
  too_large: true,
  multiple: true,
  algorithm: true,
  unknown_key: true,
  signature: true,
  expired: true,
  not_yet_valid: true,
  issuer: true,
  audience: true,
  no_expiry: true,
  revoked: true,
  forbidden: true,
} satisfies Record<Exclude<AuthReason, "ok">, true>;

const loginResults = {
  success: true,
  bad_credentials: true,
  throttled: true,
  queue_full: true,
  malformed: true,
  error: true,
} satisfies Record<LoginResult, true>;

const upstreamErrorReasons = {
  connect_refused: true,
  connect_timeout: true,
  response_timeout: true,
  reset: true,
  tls: true,
  dns: true,
  aborted: true,
  invalid_response: true,
} satisfies Record<UpstreamErrorReason, true>;

export const DENIALS: readonly string[] = Object.keys(denials);
export const LOGIN_RESULTS: readonly string[] = Object.keys(loginResults);
export const UPSTREAM_ERROR_REASONS: readonly string[] = Object.keys(upstreamErrorReasons);
export const REJECTION_REASONS: readonly string[] = REJECTIONS;

/** Route labels of our own endpoints, and of requests that no route was found for. */
export const OWN_ROUTES: readonly string[] = ["authenticate", "version", "jwks", "none"];

/** Every other method is counted as `other`: a client chooses it freely. */
export const METHODS: readonly string[] = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "other",
];
