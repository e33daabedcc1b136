/**
 * Invalid signatures. An ES256 signature has 64 bytes: r and s, both from 1 to less than the order of the curve.
 * Verifiers have accepted zeros ("psychic signatures", CVE-2022-21449), an empty part as "unsigned, so fine", some of
 * the bytes instead of all, and DER instead of the pair, which gives one token many spellings. No one must be able to
 * create another token, with or without a valid one.
 */
import { createPublicKey, randomBytes, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { byKey, compact } from "../support/compact-token.ts";
import { believes, decoding, lenient } from "../support/naive-verifiers.ts";
import {
  claims,
  expectAllRefused,
  header,
  OWN,
  present,
  useTokenGate,
} from "../support/token-gate.ts";

const good = compact(header(), claims(), byKey(OWN.privateKey));
const start = good.slice(0, good.lastIndexOf("."));
const signature = Buffer.from(good.slice(start.length + 1), "base64url");
const [r, s] = [signature.subarray(0, 32), signature.subarray(32)];

/** SEC 2 §2.4.2: the order of P-256, and the prime of its field. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const PRIME = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn;
const ZERO = bytesOf(0n);
const NUMBERS = [ZERO, bytesOf(1n), bytesOf(ORDER), bytesOf(ORDER - 1n), bytesOf(PRIME)];
const ALL_ONES = Buffer.alloc(32, 255);

function bytesOf(number: bigint): Buffer {
  return Buffer.from(number.toString(16).padStart(64, "0"), "hex");
}

const asDer = sign("sha256", Buffer.from(start), { key: OWN.privateKey, dsaEncoding: "der" });

const CASES: readonly (readonly [name: string, signatures: readonly Buffer[]])[] = [
  ["none", [Buffer.alloc(0)]],
  ["zeros of every length", [1, 8, 32, 63, 64, 65, 70, 96, 128].map((size) => Buffer.alloc(size))],
  [
    "r and s at the edges of their range",
    [...NUMBERS, ALL_ONES, r]
      .flatMap((one) => [...NUMBERS, ALL_ONES, s].map((two) => Buffer.concat([one, two])))
      .filter((pair) => !pair.equals(signature)),
  ],
  ["the first bytes of a good one", [1, 16, 32, 48, 63].map((size) => signature.subarray(0, size))],
  [
    "a good one and more",
    [1, 8, 32, 64].map((size) => Buffer.concat([signature, ZERO, ZERO]).subarray(0, 64 + size)),
  ],
  [
    "a valid one after zeros",
    [1, 8, 32].map((size) => Buffer.concat([Buffer.alloc(size), signature])),
  ],
  ["r and s swapped", [Buffer.concat([s, r])]],
  ["r twice, s twice", [Buffer.concat([r, r]), Buffer.concat([s, s])]],
  ["DER, as certificates have it", [asDer, Buffer.concat([asDer, ZERO])]],
  ["another curve's length", [96, 132].map((size) => randomBytes(size))],
  ["of another key", Array.from({ length: 8 }, () => randomBytes(64))],
  ["one bit changed", Array.from({ length: 16 }, (_, at) => flipped(at * 32 + 5))],
];

function flipped(bit: number): Buffer {
  const changed = Buffer.from(signature);
  changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
  return changed;
}

const tokensOf = (signatures: readonly Buffer[]): string[] =>
  signatures.map((bytes) => `${start}.${bytes.toString("base64url")}`);

describe("Sallyport", () => {
  const standing = useTokenGate();

  it.each(CASES)("refuses %s", async (_name, signatures) => {
    await expectAllRefused(standing(), tokensOf(signatures));
  });

  it("refuses them all again when the valid token is cached", async () => {
    const { gate, backend } = standing();
    expect((await present(gate, good)).status).toBe(200);
    backend.forget();
    await expectAllRefused(
      standing(),
      CASES.flatMap(([, signatures]) => tokensOf(signatures)),
    );
    expect((await present(gate, good)).status).toBe(200);
  });

  it("refuses two parts, four parts, and the parts of a JSON serialisation", async () => {
    const [head = "", payload = ""] = start.split(".");
    const text = signature.toString("base64url");
    const json = { protected: head, payload, signature: text };
    await expectAllRefused(standing(), [
      start,
      `${start}.${text}.`,
      `${start}.${text}.${text}`,
      `${start}..${text}`,
      `.${start}.${text}`,
      `${head}..${text}`,
      `.${payload}.${text}`,
      `${payload}.${head}.${text}`,
      JSON.stringify(json),
      JSON.stringify({ payload, signatures: [json] }),
    ]);
  });
});

describe("a verifier that does not check the signature", () => {
  it.each(CASES)("accepts %s", async (_name, signatures) => {
    for (const token of tokensOf(signatures)) expect(await believes(decoding, token)).toBe(true);
  });
});

describe("a verifier that accepts both encodings", () => {
  it("accepts DER, so that one token has two spellings", async () => {
    const verifier = lenient({ [OWN.kid]: createPublicKey(OWN.privateKey) });
    const [token = ""] = tokensOf([asDer]);
    expect(await believes(verifier, token)).toBe(true);
  });
});
