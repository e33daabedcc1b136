import { ERRORS } from "../../core/request/errors.ts";
import { AUTH_REASONS } from "../../core/request/outcome.ts";

/** Closed sets of label values, where these differ from the words in `core/request/outcome.ts`. */

export const AUTH_REFUSALS: readonly string[] = AUTH_REASONS.filter((reason) => reason !== "ok");

/** The `route` labels of our own endpoints, and of requests without a route. */
export const OWN_ROUTES: readonly string[] = [
  ...["authenticate", "logout", "version", "jwks", "preflight", "none"],
  ...["sign_in", "sign_in_provider", "sign_out", "browser_session", "provider_logout"],
];

/** All other methods count as `other`, because clients can choose any method. */
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

/** Methods whose rows expose `SERVER_ERRORS` from the start; those of other methods do after their first use. */
export const COMMON_METHODS: ReadonlySet<string | number> = new Set(["GET", "POST"]);

/**
 * The 5xx statuses of Sallyport's own responses. Their series exist at 0 from the start: a rate needs two samples, so
 * it would miss an outage whose first error creates the series.
 */
export const SERVER_ERRORS: readonly number[] = [
  ...new Set(Object.values(ERRORS).map(({ status }): number => status)),
].filter((status) => status >= 500);
