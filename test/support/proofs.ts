import { generateKeyPairSync, hash, type KeyObject, randomUUID } from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import { byKey, compact, type Signer } from "./compact-token.ts";
import { signingPair, signToken } from "./foreign-keys.ts";

/** The key of a client that proves to have it (RFC 9449). */
export interface ClientKey {
  readonly alg: "ES256" | "RS256";
  readonly privateKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;
  readonly jkt: string;
}

export async function clientKey(alg: ClientKey["alg"] = "ES256"): Promise<ClientKey> {
  const { privateKey, publicKey } =
    alg === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : generateKeyPairSync("rsa", { modulusLength: 2048 });
  const jwk = publicKey.export({ format: "jwk" });
  return { alg, privateKey, jwk: { ...jwk }, jkt: await calculateJwkThumbprint(jwk) };
}

/** What a proof says; what is undefined is left out. */
export interface ProofParts {
  readonly htu: string;
  readonly htm?: string;
  /** Whose hash is `ath`. */
  readonly token?: string;
  /** Replace or add claims. */
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly signer?: Signer;
}

/** Signs a proof that is used nowhere else. */
export function proofBy(key: ClientKey, parts: ProofParts): string {
  const { htu, htm = "GET", token, claims = {}, header = {}, signer } = parts;
  const ath = token === undefined ? {} : { ath: hash("sha256", token, "base64url") };
  const iat = Math.floor(Date.now() / 1000);
  return compact(
    { typ: "dpop+jwt", alg: key.alg, jwk: key.jwk, ...header },
    { jti: randomUUID(), htm, htu, iat, ...ath, ...claims },
    signer ?? byKey(key.privateKey),
  );
}

/** The headers of a request with a bound token. */
export function withProof(token: string, proof: string): Record<string, string> {
  return { authorization: `DPoP ${token}`, dpop: proof };
}

/** Makes a token of a trusted issuer that is bound to a client's key, and what a configuration needs to accept it. */
export async function boundToken() {
  const issuer = "https://issuer.example.com";
  const pair = signingPair("issuer");
  const client = await clientKey();
  const seconds = Math.floor(Date.now() / 1000);
  const claims = { iss: issuer, aud: "orders", sub: "alice", iat: seconds, exp: seconds + 600 };
  return {
    issuer,
    pair,
    client,
    seconds,
    token: await signToken(pair, { ...claims, cnf: { jkt: client.jkt } }),
    files: { "jwks.json": JSON.stringify({ keys: [pair.jwk] }) },
    tokens: {
      proof: "accept",
      trusted: [
        {
          issuer,
          audience: "orders",
          algorithms: ["ES256"],
          jwks: { file: "jwks.json" },
        },
      ],
    },
  };
}
