import type { Expectations } from "../../core/request/token-verifier.ts";
import type { KeySource } from "../keys/key-set.ts";
import type { SigningKeys } from "../keys/key-ring.ts";
import type { OwnKeys } from "../keys/own-keys.ts";
import type { TrustedIssuer, TrustedKeysContext } from "./trusted-issuer.ts";
import { typeName } from "../verify/token-text.ts";
import { TrustedKeys } from "./trusted-keys.ts";

/** The accepted issuers: our own and the trusted ones. */
export interface IssuerOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly keys: SigningKeys | OwnKeys;
  readonly trusted?: readonly TrustedIssuer[];
  /** The sources of the keys of trusted issuers, if they are shared. */
  readonly trustedKeys?: Pick<TrustedKeys, "open"> | undefined;
}

export interface KnownIssuer extends Expectations {
  readonly name: string;
  readonly keys: KeySource;
}

const OWN_CLOCK_SKEW_MS = 60_000; // between the clocks of replicas, for `iat` only

/**
 * Our own keys verify tokens of our own issuer only, and the keys of a trusted issuer only tokens with exactly its
 * name. Throws if two issuers have the same name.
 */
export function knownIssuers(
  { issuer, audience, keys, trusted = [], trustedKeys }: IssuerOptions,
  context: TrustedKeysContext,
): ReadonlyMap<string, KnownIssuer> {
  const sources = trustedKeys ?? new TrustedKeys(context);
  const own: KeySource = {
    current: () => keys.verification,
    refresh: () => Promise.resolve(),
    close: "onChange" in keys ? keys.onChange(context.changed) : () => undefined,
  };
  const issuers = new Map<string, KnownIssuer>();
  issuers.set(issuer, {
    name: issuer,
    audiences: [audience],
    skewMs: 0,
    issuedAheadMs: OWN_CLOCK_SKEW_MS,
    keys: own,
  });
  try {
    for (const each of trusted) {
      const { clockSkewMs } = each;
      if (issuers.has(each.issuer)) throw new Error(`The issuer ${each.issuer} is named twice`);
      issuers.set(each.issuer, {
        name: each.issuer,
        audiences: typeof each.audience === "string" ? [each.audience] : each.audience,
        skewMs: clockSkewMs,
        issuedAheadMs: clockSkewMs,
        maxLifetimeMs: each.maxLifetimeMs,
        types: each.types?.map(typeName),
        mapping: each.claims,
        keys: sources.open(each, context.changed),
      });
    }
  } catch (error) {
    for (const { keys: opened } of issuers.values()) opened.close();
    throw error;
  }
  return issuers;
}
