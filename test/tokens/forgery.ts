import { expect } from "vitest";
import type { SigningKeys } from "../../src/tokens/keys/signing-keys.ts";
import { ownKeys, signerOf, tokenOf, verifierFor } from "./fixture.ts";

export const keys = await ownKeys();
/** A good token: what a stranger begins with. */
export const good = await tokenOf(signerOf(keys));

/** Why a token is refused: never an exception, and never remembered, however often it comes. */
export async function refusal(token: string, own: SigningKeys = keys): Promise<unknown> {
  const { verifier } = verifierFor(own);
  const first = await verifier.verify(token);
  expect(await verifier.verify(token)).toBe(first);
  expect(verifier.entries()).toBe(0);
  return first;
}

/** Header, payload and signature of the good token. */
export const parts = (): [string, string, string] => {
  const [header = "", payload = "", signature = ""] = good.split(".");
  return [header, payload, signature];
};
