import { createPublicKey, createSecretKey, randomBytes } from "node:crypto";
import { exportJWK } from "jose";
import { describe, expect, test } from "vitest";
import { readKeyFiles } from "../../src/tokens/keys/key-directory.ts";
import { loadSigningKeys } from "../../src/tokens/keys/watched-keys.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { ecPair, encoded, NOW, ownKeys, pem, signerOf, tokenOf, verifierFor } from "./fixture.ts";
import { keys, parts, refusal } from "./forgery.ts";

// Tokens from an attacker who knows our public keys and a valid token, but no private key.

const publicKey = createPublicKey(signerOf(keys).key);
const withHeader = (more: Record<string, unknown>): string => {
  const [, payload, signature] = parts();
  const { kid } = signerOf(keys);
  return `${encoded({ alg: "ES256", kid, ...more })}.${payload}.${signature}`;
};

describe("the key determines the algorithm, not the token", () => {
  test.each(["none", "None", "NONE", "nOnE", "", "HS1", "es256", "constructor", "__proto__"])(
    "alg %j",
    async (alg) => {
      const [, payload, signature] = parts();
      expect(await refusal(withHeader({ alg }))).toBe("algorithm");
      const { kid } = signerOf(keys);
      expect(await refusal(`${encoded({ alg, kid })}.${payload}.`)).toBe("malformed");
      expect(await refusal(`${encoded({ alg })}.${payload}.${signature}`)).toBe("algorithm");
    },
  );

  test.each([[undefined], [null], [256], [["ES256"]]])("alg %j", async (alg) => {
    expect(await refusal(withHeader({ alg }))).toBe("malformed");
  });

  test("HMAC with a public key as its secret", async () => {
    const { kid } = signerOf(keys);
    const jwk = JSON.stringify(await exportJWK(publicKey));
    const der = publicKey.export({ format: "der", type: "spki" });
    const spellings = [pem(publicKey), pem(publicKey).trim(), der, jwk, kid];
    for (const spelling of spellings) {
      for (const algorithm of ["HS256", "HS384", "HS512"]) {
        const key = createSecretKey(Buffer.concat([Buffer.from(spelling), Buffer.alloc(64)]));
        const exact = createSecretKey(Buffer.from(spelling));
        expect(await refusal(await tokenOf({ kid, algorithm, key }))).toBe("algorithm");
        expect(await refusal(await tokenOf({ kid, algorithm, key: exact }))).toBe("algorithm");
        expect(await refusal(await tokenOf({ algorithm, key: exact }))).toBe("algorithm");
      }
    }
  });

  test("another algorithm of the same kind of key", async () => {
    const rsa = await ownKeys("RS256");
    const { kid, key } = signerOf(rsa);
    for (const algorithm of ["PS256", "RS384", "RS512"]) {
      expect(await refusal(await tokenOf({ kid, algorithm, key }), rsa)).toBe("algorithm");
    }
    const secret = createSecretKey(randomBytes(64));
    await using directory = await temporaryDirectory();
    await directory.write("s.jwk", JSON.stringify(secret.export({ format: "jwk" })));
    const shared = await loadSigningKeys({
      algorithm: "HS512",
      files: await readKeyFiles(directory.path),
      log: recordedLog(),
    });
    const weaker = { kid: signerOf(shared).kid, algorithm: "HS256", key: secret };
    expect(await refusal(await tokenOf(weaker), shared)).toBe("algorithm");
  });
});

describe("a token does not bring its own key or rules", () => {
  test("jwk, jku, x5u and x5c are ignored", async () => {
    const pair = ecPair();
    const jwk = await exportJWK(pair.publicKey);
    const hostile = {
      jwk,
      jku: "http://127.0.0.1:1/jwks.json",
      x5u: "http://127.0.0.1:1/x5u",
      x5c: [pair.publicKey.export({ format: "der", type: "spki" }).toString("base64")],
    };
    const { kid } = signerOf(keys);
    const forger = { kid, algorithm: "ES256", key: pair.privateKey };
    expect(await refusal(await tokenOf(forger, {}, hostile))).toBe("signature");
    expect(await refusal(await tokenOf({ ...forger, kid: "mine" }, {}, hostile))).toBe(
      "unknown_key",
    );
    const { verifier } = verifierFor(keys);
    const harmless = await verifier.verify(await tokenOf(signerOf(keys), {}, hostile));
    expect(harmless).toMatchObject({ subject: "alice" });
  });

  test.each<[string, Record<string, unknown>]>([
    ["crit", { crit: ["exp"], exp: NOW }],
    ["crit empty", { crit: [] }],
    ["crit null", { crit: null }],
    ["b64", { b64: false, crit: ["b64"] }],
    ["b64 alone", { b64: true }],
    ["zip", { zip: "DEF" }],
    ["kid a number", { kid: 7 }],
    ["kid null", { kid: null }],
    ["kid an object", { kid: {} }],
  ])("%s", async (_name, header) => {
    expect(await refusal(withHeader(header))).toBe("malformed");
  });

  test.each([
    "../../dev/null",
    "' OR 1=1 --",
    "__proto__",
    "constructor",
    "",
    "a".repeat(4000),
    "\u0000",
  ])("kid %.20j", async (kid) => {
    const key = createSecretKey(Buffer.alloc(32));
    expect(await refusal(withHeader({ kid }))).toBe("unknown_key");
    expect(await refusal(await tokenOf({ kid, algorithm: "HS256", key }))).toBe("unknown_key");
  });
});

describe("signatures", () => {
  const signed = (bytes: Buffer): string => {
    const [header, payload] = parts();
    return `${header}.${payload}.${bytes.toString("base64url")}`;
  };
  const order = Buffer.from(
    "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551",
    "hex",
  );

  test("r and s of zero, or of the order of the curve (CVE-2022-21449)", async () => {
    const zero = Buffer.alloc(32);
    const [, , signature] = parts();
    const r = Buffer.from(signature, "base64url").subarray(0, 32);
    for (const pair of [
      [zero, zero],
      [order, order],
      [order, zero],
      [r, zero],
      [zero, r],
      [r, order],
    ]) {
      expect(await refusal(signed(Buffer.concat(pair)))).toBe("signature");
    }
  });

  test.each([1, 2, 32, 63, 65, 72, 96, 132, 512])("of %i bytes", async (length) => {
    const [, , signature] = parts();
    const bytes = Buffer.concat([Buffer.from(signature, "base64url"), Buffer.alloc(length)]);
    expect(await refusal(signed(bytes.subarray(0, length)))).toBe("signature");
    expect(await refusal(signed(randomBytes(length)))).toBe("signature");
  });

  test("of none", async () => {
    const [header, payload] = parts();
    expect(await refusal(`${header}.${payload}.`)).toBe("malformed");
    expect(await refusal(`${header}.${payload}`)).toBe("malformed");
  });

  test("in DER, as certificates have them", async () => {
    const [, , signature] = parts();
    const raw = Buffer.from(signature, "base64url");
    const integer = (part: Buffer): Buffer => Buffer.concat([Buffer.from([2, 33, 0]), part]);
    const body = Buffer.concat([integer(raw.subarray(0, 32)), integer(raw.subarray(32))]);
    expect(await refusal(signed(Buffer.concat([Buffer.from([48, 70]), body])))).toBe("signature");
  });

  test("of the issuer's former key, and shortened by one bit", async () => {
    const { kid } = signerOf(keys);
    const former = signerOf(await ownKeys());
    expect(await refusal(await tokenOf({ ...former, kid }))).toBe("signature");
    expect(await refusal(await tokenOf(former))).toBe("unknown_key");
    const [, , signature] = parts();
    for (let at = 0; at < 64; at += 7) {
      const raw = Buffer.from(signature, "base64url");
      raw[at] = (raw[at] ?? 0) ^ 1;
      expect(await refusal(signed(raw))).toBe("signature");
    }
  });
});
