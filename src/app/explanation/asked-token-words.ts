import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { TokenRefusal, TokenStep } from "../../core/request/token-verifier.ts";
import { printable } from "../../lib/text/printable.ts";
import { isOpaque } from "../../tokens/verify/token-text.ts";

/** Texts for the steps of a token that no key verifies: another server is asked about it. */

type Trusted = Configuration["tokens"]["trusted"][number];

/** The issuers that were asked about a token, as the verifier chooses them; none for one that a key verifies. */
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

/** What a step has found; `by` is the issuer of the caller once one has vouched for the token. */
export function askedDetail(
  step: TokenStep,
  token: string,
  asked: readonly Trusted[],
  by: string | undefined,
): string | undefined {
  switch (step) {
    case "form":
      return isOpaque(token) ? "opaque: it says nothing by itself" : undefined;
    case "issuer":
      return `no key here verifies it, so ${asked.map(nameOf).join(", then ")} ${asked.length === 1 ? "is" : "are"} asked`;
    case "claims":
      return "those that the server has told";
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

/** Why nobody vouches for it; undefined for what is wrong with its form. */
export function askedFault(
  { step, reason }: TokenRefusal,
  asked: readonly Trusted[],
): string | undefined {
  const names = asked.map(nameOf).join(", ");
  if (reason === "inactive")
    return `${names} ${asked.length === 1 ? "knows" : "know"} no such token`;
  if (reason === "keys_unusable") return `${names} cannot be asked at the moment`;
  return step === "claims" ? `what the server has told does not fit: ${reason}` : undefined;
}

function nameOf({ issuer, introspection }: Trusted): string {
  const kind = introspection === undefined ? "TokenReview" : "introspection";
  return `${printable(issuer)} (${kind})`;
}
