import { compactDecrypt } from "jose/jwe/compact/decrypt";
import { CompactEncrypt } from "jose/jwe/compact/encrypt";
import { SIGN_IN_SECONDS } from "../../core/login.ts";
import { GateError } from "../../core/request/errors.ts";
import { derivedKey, type KeyRing, type SigningKeys } from "../keys/key-ring.ts";
import type { SignInSecrets } from "./openid-provider.ts";

/** What a browser keeps while a person is at a provider. */
export interface PendingSignIn extends SignInSecrets {
  readonly provider: string;
  /** A reload may have given the name to another provider. */
  readonly issuer: string;
  /** Where the person wants to go. */
  readonly to: string;
  /** The address to which the provider sends the browser back. */
  readonly returnTo: string;
}

/** The keys that sign, and all that have signed. */
export type SealingKeys = Pick<SigningKeys, "signing"> & { readonly ring: KeyRing };

const PURPOSE = "sign-in cookie";

/** Encrypts a sign-in, as a JWE. @throws GateError `keys_unusable` if there is no usable key. */
export async function sealSignIn(
  pending: PendingSignIn,
  { signing }: SealingKeys,
  nowMs: number,
): Promise<string> {
  if (signing === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
  const exp = Math.floor(nowMs / 1_000) + SIGN_IN_SECONDS;
  return new CompactEncrypt(Buffer.from(JSON.stringify({ ...pending, exp })))
    .setProtectedHeader({ alg: "dir", enc: "A256GCM", kid: signing.kid })
    .encrypt(derivedKey(signing.key, PURPOSE));
}

/** Decrypts a sign-in; undefined if it is not one of ours, or took too long. */
export async function openSignIn(
  sealed: string,
  { ring }: SealingKeys,
  nowMs: number,
): Promise<PendingSignIn | undefined> {
  try {
    const { plaintext } = await compactDecrypt(
      sealed,
      ({ kid }) => {
        const own = ring.find((each) => each.kid === kid && each.key.type !== "public");
        if (own === undefined) throw new Error("no key of ours");
        return derivedKey(own.key, PURPOSE);
      },
      { keyManagementAlgorithms: ["dir"], contentEncryptionAlgorithms: ["A256GCM"] },
    );
    const text = Buffer.from(plaintext).toString();
    const pending: PendingSignIn & { readonly exp: number } = JSON.parse(text);
    return pending.exp > Math.floor(nowMs / 1_000) ? pending : undefined;
  } catch {
    return undefined;
  }
}
