import { generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { calculateJwkThumbprint, SignJWT } from "jose";

export type Algorithm = "ES256" | "RS256";

export const ISSUER = "https://bench.example.com";
export const AUDIENCE = "bench";
/** The group that the measured route requires. */
export const GROUP = "measured";

/** Other claims, which are typical of identity providers. */
const MORE = {
  scope: "openid orders:read orders:write",
  tenant: { name: "acme" },
  email: "alice@example.com",
  email_verified: true,
};

/** A key pair that all peers share. */
export interface TokenKey {
  readonly algorithm: Algorithm;
  /** A directory that contains only the private key, as PEM. */
  readonly directory: string;
  readonly publicFile: string;
  /** Signs a valid token, or with `changes` one that must be refused. */
  sign(changes?: TokenChanges): Promise<string>;
}

interface TokenChanges {
  readonly issuer?: string;
  readonly audience?: string;
  /** Seconds from now until `exp`; negative for an expired token. */
  readonly lifetime?: number;
  /** The thumbprint of the key to which it is bound; by default none. */
  readonly jkt?: string;
}

const LIFETIME = 18_000;

/** Creates a key for each algorithm in the directory. */
export async function makeTokenKeys(directory: string): Promise<Record<Algorithm, TokenKey>> {
  const pairs = {
    ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }),
    RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }),
  };
  return {
    ES256: await keep("ES256", pairs.ES256, join(directory, "es256")),
    RS256: await keep("RS256", pairs.RS256, join(directory, "rs256")),
  };
}

async function keep(
  algorithm: Algorithm,
  { privateKey, publicKey }: { readonly privateKey: KeyObject; readonly publicKey: KeyObject },
  directory: string,
): Promise<TokenKey> {
  await mkdir(directory);
  const pem = privateKey.export({ format: "pem", type: "pkcs8" });
  await writeFile(join(directory, "key.pem"), pem, { mode: 0o600 });
  const publicFile = `${directory}-public.pem`;
  await writeFile(publicFile, publicKey.export({ format: "pem", type: "spki" }));
  const kid = await calculateJwkThumbprint(publicKey);
  return {
    algorithm,
    directory,
    publicFile,
    sign({ issuer = ISSUER, audience = AUDIENCE, lifetime = LIFETIME, jkt } = {}) {
      const now = Math.floor(Date.now() / 1000);
      return new SignJWT({ groups: [GROUP], ...MORE, ...(jkt !== undefined && { cnf: { jkt } }) })
        .setProtectedHeader({ alg: algorithm, kid, typ: "JWT" })
        .setIssuer(issuer)
        .setSubject("alice")
        .setAudience(audience)
        .setIssuedAt(now)
        .setExpirationTime(now + lifetime)
        .setJti(randomBytes(12).toString("base64url"))
        .sign(privateKey);
    },
  };
}

/** Returns a token with the same claims and a random signature. */
export function forge(token: string): string {
  return `${token.slice(0, token.lastIndexOf(".") + 1)}${randomBytes(64).toString("base64url")}`;
}

/** Returns random text in the form of a token. */
export function garbage(): string {
  return [60, 240, 64].map((length) => randomBytes(length).toString("base64url")).join(".");
}
