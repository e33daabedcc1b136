import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import type { Clock } from "../../lib/clock.ts";
import { HttpCall, type HttpCallSettings } from "./http-call.ts";
import { type AuthorizationKind, RemoteAuthorizer } from "./remote-authorizer.ts";
import { SubjectAccessReview, type SubjectAccessReviewSettings } from "./subject-access-review.ts";

interface Common {
  /** In milliseconds. */
  readonly timeout: number;
  /** How long a positive answer is cached, in milliseconds. */
  readonly cache: number;
  readonly onError: "unavailable" | "deny";
}

export type AuthorizationSettings = Common &
  (
    | ({ readonly kind: "subjectAccessReview" } & SubjectAccessReviewSettings)
    | ({ readonly kind: "http" } & HttpCallSettings)
  );

/** Opens one entry of `authorization`. Close it after its last request. */
export function openAuthorizer(
  settings: AuthorizationSettings,
  clock: Clock,
  observer: RemoteCheckObserver,
): RemoteAuthorizer {
  const { timeout, cache, onError } = settings;
  return new RemoteAuthorizer({
    ...{ kind: kindOf(settings), timeout, cache, onError, clock, observer },
  });
}

function kindOf(settings: AuthorizationSettings): AuthorizationKind {
  return settings.kind === "http" ? new HttpCall(settings) : new SubjectAccessReview(settings);
}
