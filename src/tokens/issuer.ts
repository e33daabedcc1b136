import { randomBytes } from "node:crypto";
import { SignJWT } from "jose/jwt/sign";
import { GateError } from "../core/request/errors.ts";
import type { Observer } from "../core/observer.ts";
import type { TokenIssuer } from "../core/login.ts";
import type { SigningKeys } from "./keys/key-ring.ts";

export interface TokenIssuerOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly lifetimeMs: number;
  readonly keys: SigningKeys;
  readonly observer: Pick<Observer, "tokenIssued">;
}

/** Issues tokens that expire `lifetimeMs` after the second in which the password was verified. */
export function createTokenIssuer(options: TokenIssuerOptions): TokenIssuer {
  const { issuer, audience, lifetimeMs, keys, observer } = options;
  const lifetime = Math.floor(lifetimeMs / 1000);
  return {
    async issue(user, verifiedAt) {
      const { signing } = keys;
      if (signing === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
      const { algorithm, kid, key } = signing;
      const issuedAt = Math.floor(verifiedAt / 1000);
      const token = await new SignJWT({ groups: [...user.groups] })
        .setProtectedHeader({ alg: algorithm, kid, typ: "JWT" })
        .setIssuer(issuer)
        .setSubject(user.name)
        .setAudience(audience)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + lifetime)
        .setJti(randomBytes(16).toString("base64url"))
        .sign(key);
      observer.tokenIssued();
      return token;
    },
  };
}
