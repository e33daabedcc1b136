import { AUTH_REASONS } from "../core/outcome.ts";

/** The closed sets of label values that are not words of `core/outcome.ts` as they stand there. */

export const DENIALS: readonly string[] = AUTH_REASONS.filter((reason) => reason !== "ok");

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
