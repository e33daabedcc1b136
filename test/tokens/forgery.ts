import { expect } from "vitest";
import type { SigningKeys } from "../../src/tokens/keys/key-ring.ts";
import { ownKeys, signerOf, tokenOf, verifierFor } from "./fixture.ts";

export const keys = await ownKeys();
/** A valid token, from which the attacker starts. */
export const good = await tokenOf(signerOf(keys));

/** Returns why a token is refused. Checks that it never throws and never caches the token, however often it is sent. */
export async function refusal(token: string, own: SigningKeys = keys): Promise<unknown> {
  const { verifier } = verifierFor(own);
  const first = await verifier.verify(token);
  expect(await verifier.verify(token)).toBe(first);
  expect(verifier.entries()).toBe(0);
  return first;
}

/** Header, payload and signature of the valid token. */
export const parts = (): [string, string, string] => {
  const [header = "", payload = "", signature = ""] = good.split(".");
  return [header, payload, signature];
};
