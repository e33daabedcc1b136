import { randomBytes } from "node:crypto";
import { cheapHash } from "../../test/support/sallyport.ts";
import { signingPair, type SigningPair, signToken } from "../../test/support/foreign-keys.ts";
import { FOREIGN_AUDIENCE, FOREIGN_ISSUER, PASSWORD, USER } from "./configuration.ts";

/** Users as in the users file. */
export type Users = Readonly<Record<string, object>>;

/** Returns the permanent users. */
export function lastingUsers(): Users {
  return { [USER]: { password: cheapHash(PASSWORD), groups: ["sales"] } };
}

export function usersFile(users: Users): string {
  return JSON.stringify({ users });
}

export function keySetFile(pairs: readonly SigningPair[]): string {
  return JSON.stringify({ keys: pairs.map(({ jwk }) => jwk) });
}

let keys = 0;

/** Creates a new key pair for the foreign issuer. */
export function foreignPair(): SigningPair {
  keys += 1;
  return signingPair(`foreign-${keys}`);
}

/** Signs a token of the foreign issuer. @param lifetime seconds from now until `exp`; negative for an expired token. */
export function foreignToken(pair: SigningPair, lifetime = 86_400): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return signToken(pair, {
    iss: FOREIGN_ISSUER,
    aud: FOREIGN_AUDIENCE,
    sub: "visitor",
    groups: ["visitors"],
    iat: now - 100_000,
    exp: now + lifetime,
  });
}

/** Returns a token with the same claims and a random signature. */
export function forge(token: string): string {
  return `${token.slice(0, token.lastIndexOf(".") + 1)}${randomBytes(64).toString("base64url")}`;
}

/** Returns random text in the form of a token. */
export function garbage(): string {
  return [60, 240, 64].map((length) => randomBytes(length).toString("base64url")).join(".");
}
