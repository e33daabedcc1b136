import type { Configuration } from "../../config/configuration.ts";
import type {
  RemoteCheckName,
  RemoteCheckObserver,
  RemoteOutage,
} from "../../core/remote-check.ts";
import type { Clock } from "../../lib/clock.ts";
import { Outage } from "../../lib/outage.ts";
import {
  type AuthorizationSettings,
  completeAuthorizer,
} from "../../policy/remote/authorizer-kinds.ts";
import type { GateOptions } from "./gate-options.ts";
import { tokenCheckOf } from "../../tokens/remote/token-check-kinds.ts";

/** How long a server counts as unavailable if nobody asks it again, in milliseconds. */
const UNAVAILABLE_MS = 60_000;

/** The servers of checks that one thread cannot ask. The configuration bounds their number. */
export class RemoteOutages {
  readonly #outages = new Map<string, RemoteOutage>();
  readonly #now: () => number;

  constructor({ now }: Pick<Clock, "now">) {
    this.#now = now;
  }

  failed(check: RemoteCheckName): void {
    const now = this.#now();
    const { since = now, stale = false } = this.#outages.get(keyOf(check)) ?? {};
    this.#outages.set(keyOf(check), { ...check, since, failedAt: now, stale });
  }

  stale(check: RemoteCheckName): void {
    const known = this.#outages.get(keyOf(check));
    if (known !== undefined) this.#outages.set(keyOf(check), { ...known, stale: true });
  }

  answered(check: RemoteCheckName): void {
    this.#outages.delete(keyOf(check));
  }

  list(): RemoteOutage[] {
    const now = this.#now();
    return [...this.#outages.values()].filter(({ failedAt }) => now < failedAt + UNAVAILABLE_MS);
  }
}

function keyOf({ kind, name }: RemoteCheckName): string {
  return `${kind} ${name}`;
}

/** Merges the outages of several threads: the longest counts. */
export function mergeOutages(ofThreads: readonly RemoteOutage[]): RemoteOutage[] {
  const merged = new Map<string, RemoteOutage>();
  for (const each of ofThreads) {
    const { since, failedAt, stale } = merged.get(keyOf(each)) ?? each;
    merged.set(keyOf(each), {
      ...each,
      since: Math.min(since, each.since),
      failedAt: Math.max(failedAt, each.failedAt),
      stale: stale || each.stale,
    });
  }
  return [...merged.values()];
}

/** Counts the results of a check, and logs an outage when it begins, every ten minutes, and when it ends. */
export function observeCheck(
  { kind, name }: RemoteCheckName,
  { observer, log, clock, outages }: Pick<GateOptions, "observer" | "log" | "clock" | "outages">,
): RemoteCheckObserver {
  const outage = new Outage(clock);
  const check = { kind, name };
  return {
    cached: () => observer.remoteChecked(check, "cached", undefined),
    stale() {
      observer.remoteChecked(check, "stale", undefined);
      outages?.stale(check);
    },
    answered(allowed, seconds) {
      outages?.answered(check);
      observer.remoteChecked(check, allowed ? "allowed" : "denied", seconds);
      const ended = outage.succeeded();
      if (ended === undefined) return;
      log.info("a remote check is available again", { ...check, attempts: ended.attempts });
    },
    failed(reason, seconds) {
      observer.remoteChecked(check, "unavailable", seconds);
      outages?.failed(check);
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
export function authorizationOf(
  configuration: Configuration,
): ReadonlyMap<string, AuthorizationSettings> {
  const { authorization, tokens } = configuration;
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
