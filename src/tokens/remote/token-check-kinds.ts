import type { RemoteProbe } from "../../core/remote-check.ts";
import { keysOf } from "../../lib/keys-of.ts";
import { introspection } from "./introspection.ts";
import type { RemoteTokenCheck, TokenCheckKind } from "./token-check-kind.ts";
import { tokenReview } from "./token-review.ts";

/** The kinds by the key of an issuer in `tokens.trusted`. Their settings are in `config/schema/identity/remote-issuers.ts`. */
const KINDS = { introspection, tokenReview } as const;

type Settings = {
  [Kind in keyof typeof KINDS]: (typeof KINDS)[Kind] extends TokenCheckKind<infer Own>
    ? Own
    : never;
};

export type TokenCheckName = keyof Settings;

export const TOKEN_CHECKS: readonly TokenCheckName[] = keysOf(KINDS);

interface Common {
  /** Milliseconds. */
  readonly timeout: number;
  /** How long a positive result is cached, in milliseconds. */
  readonly cache: number;
  readonly caFile?: string;
}

/** The settings of an issuer whose tokens another server verifies: those of one kind. */
export type TokenCheckSettings = {
  readonly [Kind in TokenCheckName]?: (Common & Settings[Kind]) | undefined;
};

const BY_NAME: { readonly [Kind in TokenCheckName]: TokenCheckKind<Settings[Kind]> } = KINDS;

/** How another server verifies the tokens of an issuer. */
export interface TokenCheck
  extends Common, Pick<TokenCheckKind<never>, "label" | "opaqueOnly" | "ofCluster"> {
  readonly kind: TokenCheckName;
  /** Close it after its last query. */
  open(): RemoteTokenCheck;
  /** Returns a test query for `sallyport doctor`. @param nothing a text that is no token. */
  probe(nothing: string): RemoteProbe;
}

/** Returns how another server verifies the tokens of an issuer; undefined if none does. */
export function tokenCheckOf(issuer: TokenCheckSettings): TokenCheck | undefined {
  for (const kind of TOKEN_CHECKS) {
    const found = checkOf(kind, issuer[kind]);
    if (found !== undefined) return found;
  }
  return undefined;
}

function checkOf<Kind extends TokenCheckName>(
  kind: Kind,
  settings: (Common & Settings[Kind]) | undefined,
): TokenCheck | undefined {
  if (settings === undefined) return undefined;
  const { label, opaqueOnly, ofCluster, hint, ...row } = BY_NAME[kind];
  const { timeout, cache, caFile } = settings;
  return {
    ...{ kind, label, opaqueOnly, ofCluster, timeout, cache },
    ...(caFile === undefined ? {} : { caFile }),
    open: () => row.open(settings),
    probe: (nothing) => ({
      ...{ url: row.url(settings), hint },
      async ask(signal) {
        const check = row.open(settings);
        try {
          return await check.ask(nothing, signal);
        } finally {
          check.close();
        }
      },
    }),
  };
}
