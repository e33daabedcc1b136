import { randomBytes } from "node:crypto";
import { SignJWT } from "jose/jwt/sign";
import { GateError } from "../core/request/errors.ts";
import type { Observer } from "../core/observer.ts";
import type { User } from "../core/login.ts";
import type { SigningKeys } from "./keys/key-ring.ts";

export interface TokenIssuerOptions {
  readonly issuer: string;
  readonly audience: string;
  readonly lifetimeMs: number;
  readonly keys: SigningKeys;
  readonly observer: Pick<Observer, "tokenIssued">;
}

/** Signs tokens for users who have logged in. */
export class TokenIssuer {
  readonly #options: TokenIssuerOptions;

  constructor(options: TokenIssuerOptions) {
    this.#options = options;
  }

  /**
   * Issues a token that expires `lifetimeMs`, by default that of the options, after the second in which the password was verified.
   *
   * @param verifiedAt when the verification of the password began, in milliseconds since the epoch: `iat`. A revocation
   * or removal of the user since then ends the token.
   * @param claims further claims.
   * @throws GateError `keys_unusable` if there is no usable key.
   */
  async issue(
    user: User,
    verifiedAt: number,
    lifetimeMs = this.#options.lifetimeMs,
    claims: Readonly<Record<string, unknown>> = {},
  ): Promise<string> {
    const { issuer, audience, keys, observer } = this.#options;
    const { signing } = keys;
    if (signing === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
    const { algorithm, kid, key } = signing;
    const issuedAt = Math.floor(verifiedAt / 1000);
    const token = await new SignJWT({ ...claims, groups: [...user.groups] })
      .setProtectedHeader({ alg: algorithm, kid, typ: "JWT" })
      .setIssuer(issuer)
      .setSubject(user.name)
      .setAudience(audience)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + Math.floor(lifetimeMs / 1000))
      .setJti(randomBytes(16).toString("base64url"))
      .sign(key);
    observer.tokenIssued();
    return token;
  }
}
