import { generateKeyPairSync } from "node:crypto";
import { expect, it } from "vitest";
import { readProofHeader } from "../../src/tokens/proofs/proof-text.ts";

const rsa = (bits: number) => {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: bits });
  return { ...publicKey.export({ format: "jwk" }) };
};
const usual = rsa(2048);

it.each([
  ["a usual key", usual, undefined],
  ["a small key", rsa(1024), "the RSA key has 1024 bits, 2048 or more are needed"],
  ["a large key", rsa(4_608), '"jwk" is too large'],
  // OpenSSL would take 5 ms to verify a signature with it.
  ["a long exponent", { ...usual, e: `${(usual.n ?? "").slice(0, -2)}AQ` }, '"jwk" is too large'],
  [
    "another type",
    generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }),
    '"alg" does not fit "jwk"',
  ],
  [
    "another kind of curve",
    { kty: "OKP", crv: "X25519", x: "A".repeat(43) },
    "keys of the type x25519 are not supported",
  ],
])("reads %s", (_what, jwk, fault) => {
  const text = JSON.stringify({ typ: "dpop+jwt", alg: "RS256", jwk });
  const header = readProofHeader(Buffer.from(text).toString("base64url"));
  if (typeof header === "string") throw new Error(header);
  const key = header.key("");
  expect(typeof key === "string" ? key : undefined).toBe(fault);
});
