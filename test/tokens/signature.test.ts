import { createSecretKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { CompactSign, compactVerify } from "jose";
import { describe, expect, test } from "vitest";
import {
  ALGORITHMS,
  isSigningAlgorithm,
  type SigningAlgorithm,
} from "../../src/tokens/keys/algorithms.ts";
import { isSignedWith } from "../../src/tokens/keys/algorithms.ts";

interface Pair {
  readonly signing: KeyObject;
  readonly verifying: KeyObject;
}

function pairOf(algorithm: SigningAlgorithm): Pair {
  const row = ALGORITHMS[algorithm];
  switch (row.keyType) {
    case "secret": {
      const secret = createSecretKey(randomBytes(row.bytes));
      return { signing: secret, verifying: secret };
    }
    case "rsa": {
      const made = generateKeyPairSync("rsa", { modulusLength: 2048 });
      return { signing: made.privateKey, verifying: made.publicKey };
    }
    case "ec": {
      const made = generateKeyPairSync("ec", { namedCurve: row.curve });
      return { signing: made.privateKey, verifying: made.publicKey };
    }
    case "ed25519": {
      const made = generateKeyPairSync("ed25519");
      return { signing: made.privateKey, verifying: made.publicKey };
    }
  }
}

const PAYLOAD = new TextEncoder().encode('{"sub":"alice"}');

/** Returns the verdict of jose, an independent implementation of the same RFCs. */
async function joseAccepts(token: string, key: KeyObject, algorithm: string): Promise<boolean> {
  return compactVerify(token, key, { algorithms: [algorithm] }).then(
    () => true,
    () => false,
  );
}

/** Returns a copy with one bit of one byte flipped. */
function flipped(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
}

function withSignature(token: string, change: (signature: Buffer) => Buffer): string {
  const dot = token.lastIndexOf(".");
  const signature = Buffer.from(token.slice(dot + 1), "base64url");
  return `${token.slice(0, dot)}.${change(signature).toString("base64url")}`;
}

describe.each(Object.keys(ALGORITHMS).filter(isSigningAlgorithm))("%s", (algorithm) => {
  const { signing, verifying } = pairOf(algorithm);
  const made = new CompactSign(PAYLOAD).setProtectedHeader({ alg: algorithm }).sign(signing);

  test("accepts what jose signs", async () => {
    expect(isSignedWith(await made, verifying, algorithm)).toBe(true);
  });

  test.each<[string, (signature: Buffer) => Buffer]>([
    ["one bit changed at the start", (s) => flipped(s, 0)],
    ["one bit changed at the end", (s) => flipped(s, s.length - 1)],
    ["cut by a byte", (s) => s.subarray(0, -1)],
    ["a byte longer", (s) => Buffer.concat([s, Buffer.from([0])])],
    ["nothing but zeros", (s) => Buffer.alloc(s.length)],
    ["nothing but ones", (s) => Buffer.alloc(s.length, 0xff)],
    ["twice", (s) => Buffer.concat([s, s])],
    ["empty", () => Buffer.alloc(0)],
    [
      "halves changed round",
      (s) => Buffer.concat([s.subarray(s.length / 2), s.subarray(0, s.length / 2)]),
    ],
  ])("a signature %s is refused, as jose does", async (_name, change) => {
    const token = withSignature(await made, change);
    expect(isSignedWith(token, verifying, algorithm)).toBe(false);
    expect(await joseAccepts(token, verifying, algorithm)).toBe(false);
  });

  test("another payload or header is refused", async () => {
    const [head, body, signature] = (await made).split(".");
    expect(isSignedWith(`${head}.${body}A.${signature}`, verifying, algorithm)).toBe(false);
    expect(isSignedWith(`${head}A.${body}.${signature}`, verifying, algorithm)).toBe(false);
  });

  test("another key is refused", async () => {
    expect(isSignedWith(await made, pairOf(algorithm).verifying, algorithm)).toBe(false);
  });

  const siblings = Object.keys(ALGORITHMS)
    .filter(isSigningAlgorithm)
    .filter(
      (other) => other !== algorithm && ALGORITHMS[other].keyType === ALGORITHMS[algorithm].keyType,
    );
  test.each(siblings)("refuses it as %s", async (other) => {
    expect(isSignedWith(await made, verifying, other)).toBe(false);
  });
});
