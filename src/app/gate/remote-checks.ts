import type { Configuration } from "../../config/configuration.ts";
import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";
import type { RemoteCheckName, RemoteCheckObserver } from "../../core/remote-check.ts";
import type { Clock } from "../../lib/clock.ts";
import { Outage } from "../../lib/outage.ts";
import {
  type AuthorizationSettings,
  completeAuthorizer,
} from "../../policy/remote/authorizer-kinds.ts";
import { tokenCheckOf } from "../../tokens/remote/token-check-kinds.ts";

/** Counts the results of a check, and logs an outage when it begins, every ten minutes, and when it ends. */
export function observeCheck(
  { kind, name }: RemoteCheckName,
  {
    observer,
    log,
    clock,
  }: { readonly observer: Observer; readonly log: Log; readonly clock: Clock },
): RemoteCheckObserver {
  const outage = new Outage(clock);
  const check = { kind, name };
  return {
    cached: () => observer.remoteChecked(check, "cached", undefined),
    stale: () => observer.remoteChecked(check, "stale", undefined),
    answered(allowed, seconds) {
      observer.remoteChecked(check, allowed ? "allowed" : "denied", seconds);
      const ended = outage.succeeded();
      if (ended === undefined) return;
      log.info("a remote check is available again", { ...check, attempts: ended.attempts });
    },
    failed(reason, seconds) {
      observer.remoteChecked(check, "unavailable", seconds);
      const begun = outage.failed();
      if (begun === undefined) return;
      const { attempts } = begun;
      log.error("a remote check is unavailable", { ...check, reason, attempts });
    },
  };
}

/** The kind of a sign-in at a provider, as a check. */
export const SIGN_IN = "signIn";

/** Whether keys verify the tokens of an issuer in `tokens.trusted`. If not, another server verifies them. */
export function isKeyed<Each extends object>(each: Each): each is Extract<Each, { jwks: unknown }> {
  return "jwks" in each;
}

/** Returns the remote checks of a configuration, with their names in metrics. */
export function checksIn({ authorization, tokens, browser }: Configuration): RemoteCheckName[] {
  return [
    ...tokens.trusted.flatMap((each): RemoteCheckName[] => {
      const check = tokenCheckOf(each);
      return check === undefined ? [] : [{ kind: check.kind, name: each.issuer }];
    }),
    ...Object.entries(authorization).map(([name, { kind }]) => ({ kind, name })),
    ...(browser?.providers ?? []).map(({ name }) => ({ kind: SIGN_IN, name })),
  ];
}

/** Returns the settings of the entries of `authorization`, completed by those that follow from the rest of the configuration. */
export function authorizationOf({
  authorization,
  tokens,
}: Configuration): ReadonlyMap<string, AuthorizationSettings> {
  const ofCluster = tokens.trusted
    .filter((each) => tokenCheckOf(each)?.ofCluster === true)
    .map(({ issuer }) => issuer);
  return new Map(
    Object.entries(authorization).map(([name, settings]) => [
      name,
      completeAuthorizer(settings, ofCluster),
    ]),
  );
}
