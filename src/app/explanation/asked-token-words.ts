import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { TokenRefusal, TokenStep } from "../../core/request/token-verifier.ts";
import { printable } from "../../lib/text/printable.ts";
import { isOpaque } from "../../tokens/verify/token-text.ts";

/** Texts for the verification steps of a token that another server verifies. */

type Trusted = Configuration["tokens"]["trusted"][number];

/** Returns the issuers whose servers are queried about a token, in the verifier's order; none if a key verifies it. */
export function askedAbout(
  token: string,
  iss: unknown,
  { issuer, trusted }: Configuration["tokens"],
): readonly Trusted[] {
  const opaque = isOpaque(token);
  const keyed = trusted.some((each) => "jwks" in each && each.issuer === iss);
  if (!opaque && (keyed || iss === issuer)) return [];
  return trusted.filter(
    ({ introspection, tokenReview }) =>
      tokenReview !== undefined || (opaque && introspection !== undefined),
  );
}

/** Returns the result of a step as text; `by` is the issuer that accepted the token. */
export function askedDetail(
  step: TokenStep,
  token: string,
  asked: readonly Trusted[],
  by: string | undefined,
): string | undefined {
  switch (step) {
    case "form":
      return isOpaque(token) ? "opaque: only its issuer can read it" : undefined;
    case "issuer":
      return `no key here verifies it, so ${asked.map(nameOf).join(", then ")} ${asked.length === 1 ? "is" : "are"} asked`;
    case "claims":
      return "as the server reports them";
    case "key":
      return "none is needed";
    case "signature": {
      const vouching = asked.find(({ issuer }) => issuer === by);
      return vouching === undefined ? undefined : `${nameOf(vouching)} vouches for it`;
    }
    default:
      return undefined;
  }
}

/** Returns why no issuer accepts the token; undefined if the reason is its form. */
export function askedFault(
  { step, reason }: TokenRefusal,
  asked: readonly Trusted[],
): string | undefined {
  const names = asked.map(nameOf).join(", ");
  if (reason === "inactive")
    return `${names} ${asked.length === 1 ? "does" : "do"} not accept the token`;
  if (reason === "keys_unusable")
    return `${names} ${asked.length === 1 ? "is" : "are"} unavailable at the moment`;
  return step === "claims" ? `the server's answer does not fit: ${reason}` : undefined;
}

function nameOf({ issuer, introspection }: Trusted): string {
  const kind = introspection === undefined ? "TokenReview" : "introspection";
  return `${printable(issuer)} (${kind})`;
}
