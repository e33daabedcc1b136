import { randomBytes } from "node:crypto";
import { signingPair, signToken } from "../../../test/support/foreign-keys.ts";
import { AUDIENCE, ISSUER } from "./configuration.ts";

/** The key of the trusted issuer, which is the same for all attacks, so that its tokens are created only once. */
export const SIGNER = signingPair("exhaustion");

const GROUPS = Array.from({ length: 200 }, (_, index) => `cn=team-${1_000 + index},ou=groups`);
let large: Promise<readonly string[]> | undefined;

/** Signs a token of the issuer for a user, valid for an hour. */
export function tokenFor(subject: string, groups = ["sales"]): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return signToken(SIGNER, {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: subject,
    groups,
    iat: now,
    exp: now + 3_600,
    jti: randomBytes(12).toString("base64url"),
  });
}

/** Returns different tokens with 200 groups, some 8 KB each. Every call returns the same ones. */
export function largeTokens(count: number): Promise<readonly string[]> {
  large ??= Promise.all(Array.from({ length: count }, () => tokenFor("mallory", GROUPS)));
  return large;
}
