import type {
  QueriedServer,
  TokenRefusal,
  TokenStep,
  VerificationTrace,
} from "../../core/request/token-verifier.ts";
import { printable } from "../../lib/text/printable.ts";
import { isOpaque } from "../../tokens/verify/token-text.ts";

/** Texts for the verification steps of a token that other servers verify. */

/** Returns the result of a step that the token passed, as text; undefined where it is the same as with a key. */
export function remotePassDetail(
  step: TokenStep,
  token: string,
  { queried }: VerificationTrace,
): string | undefined {
  switch (step) {
    case "form":
      return isOpaque(token) ? "opaque: only its issuer can read it" : undefined;
    case "issuer":
      return queried.length === 0
        ? "no key here verifies it, and an answer of its issuer is cached"
        : `no key here verifies it, so ${queried.map(nameOf).join(", then ")} ${queried.length === 1 ? "is" : "are"} asked`;
    case "key":
      return "none is needed";
    case "signature": {
      const vouching = queried.find(({ result }) => result === "accepted");
      return vouching === undefined
        ? "its issuer vouches for it"
        : `${nameOf(vouching)} vouches for it`;
    }
    case "claims":
      return "as the server reports them";
    default:
      return undefined;
  }
}

/** Returns why no issuer accepts the token; undefined if the reason is its form. */
export function remoteFailDetail(
  { step, reason }: TokenRefusal,
  { queried }: VerificationTrace,
): string | undefined {
  if (reason === "inactive") {
    if (queried.length === 0) return "its issuer did not accept it a moment ago";
    return `${queried.map(nameOf).join(", ")} ${queried.length === 1 ? "does" : "do"} not accept the token`;
  }
  if (reason === "keys_unusable") {
    const silent = queried.filter(({ result }) => result === "unavailable");
    return `${silent.map(nameOf).join(", ")} ${silent.length === 1 ? "is" : "are"} unavailable at the moment`;
  }
  return step === "claims" ? `the server's answer does not fit: ${reason}` : undefined;
}

function nameOf({ issuer, label }: QueriedServer): string {
  return `${printable(issuer)} (${label})`;
}
