import type { RemoteCheckObserver, RemoteProbe } from "../../core/remote-check.ts";
import type { Clock } from "../../lib/clock.ts";
import { keysOf } from "../../lib/keys-of.ts";
import type { AuthorizerKind } from "./authorizer-kind.ts";
import { http } from "./http-call.ts";
import { RemoteAuthorizer } from "./remote-authorizer.ts";
import { subjectAccessReview } from "./subject-access-review.ts";

/** The values of `kind` in an entry of `authorization`. The settings of each kind are in `config/schema/traffic/authorization-section.ts`. */
const KINDS = { subjectAccessReview, http } as const;

type Settings = {
  [Kind in keyof typeof KINDS]: (typeof KINDS)[Kind] extends AuthorizerKind<infer Own>
    ? Own
    : never;
};

export type AuthorizerKindName = keyof Settings;

export const AUTHORIZERS: readonly AuthorizerKindName[] = keysOf(KINDS);

interface Common {
  /** In milliseconds. */
  readonly timeout: number;
  /** How long a positive answer is cached, in milliseconds. */
  readonly cache: number;
  readonly onError: "unavailable" | "deny";
}

/** An entry of `authorization`. */
export type AuthorizationSettings<Kind extends AuthorizerKindName = AuthorizerKindName> = {
  [Each in Kind]: { readonly kind: Each } & Common & Settings[Each];
}[Kind];

const BY_NAME: { readonly [Kind in AuthorizerKindName]: AuthorizerKind<Settings[Kind]> } = KINDS;

/** Opens one entry of `authorization`. Close it after its last request. */
export function openAuthorizer<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  clock: Clock,
  observer: RemoteCheckObserver,
): RemoteAuthorizer {
  const { kind, timeout, cache, onError } = settings;
  const client = BY_NAME[kind].open(settings);
  return new RemoteAuthorizer({ client, timeout, cache, onError, clock, observer });
}

/** Completes settings by what follows from the rest of the configuration: see `AuthorizerKind`. */
export function completeAuthorizer<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  clusterIssuers: readonly string[],
): AuthorizationSettings<Kind> {
  return { ...settings, ...BY_NAME[settings.kind].complete?.(settings, clusterIssuers) };
}

/** Returns a test question for `sallyport doctor`. @param nobody a caller to whom the server must say no. */
export function authorizerProbe<Kind extends AuthorizerKindName>(
  settings: AuthorizationSettings<Kind>,
  nobody: string,
): RemoteProbe {
  const kind = BY_NAME[settings.kind];
  const { url, question, hint } = kind.probe(settings, nobody);
  const ask = async (signal: AbortSignal): Promise<unknown> => {
    const client = kind.open(settings);
    try {
      return await client.ask(question, signal);
    } finally {
      client.close();
    }
  };
  return { url, hint, ask };
}
