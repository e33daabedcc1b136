import { ERRORS } from "../../core/request/errors.ts";
import { AUTH_REASONS } from "../../core/request/outcome.ts";

/** The closed sets of label values that differ from the words of `core/request/outcome.ts`. */

export const AUTH_REFUSALS: readonly string[] = AUTH_REASONS.filter((reason) => reason !== "ok");

/** Route labels of our own endpoints, and of requests without a route. */
export const OWN_ROUTES: readonly string[] = [
  ...["authenticate", "logout", "version", "jwks", "preflight", "none"],
];

/** Every other method counts as `other`, since clients choose it freely. */
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

/** Methods whose rows expose `SERVER_ERRORS` from the start; others do after their first use. */
export const COMMON_METHODS: readonly string[] = ["GET", "POST"];

/**
 * The 5xx that Sallyport answers itself. Their series exist at 0 from the start: a rate needs two samples and would
 * miss an outage that creates its own series.
 */
export const SERVER_ERRORS: readonly number[] = [
  ...new Set(Object.values(ERRORS).map(({ status }): number => status)),
].filter((status) => status >= 500);
