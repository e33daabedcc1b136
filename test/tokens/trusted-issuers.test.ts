import { createSecretKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, expect, test } from "vitest";
import { Identity } from "../../src/core/request/identity.ts";
import { NOW, signerOf, tokenOf } from "./fixture.ts";
import {
  OTHER,
  rsa,
  later,
  laterSigner,
  ec,
  jwkOf,
  jwksOf,
  first,
  theirs,
  signer,
  own,
  trusting,
  trustingFile,
} from "./trust.ts";

describe("tokens of another issuer", () => {
  test("are accepted with its key, for its audience", async () => {
    const { verifier } = await trustingFile(first);
    expect(await verifier.verify(await tokenOf(signer, theirs))).toMatchObject({
      subject: "alice",
      issuer: OTHER,
      expiresAt: NOW + 600,
    });
    expect(await verifier.verify(await tokenOf(signer, { iss: OTHER }))).toBe("audience");
    expect(await verifier.verify(await tokenOf(signer, { ...theirs, iss: `${OTHER}/` }))).toBe(
      "issuer",
    );
  });

  test("no issuer can speak for another", async () => {
    const { verifier } = await trustingFile(first);
    const ours = signerOf(own);
    expect(await verifier.verify(await tokenOf(signer, {}))).toBe("unknown_key");
    expect(await verifier.verify(await tokenOf({ ...signer, kid: ours.kid }))).toBe("algorithm");
    expect(await verifier.verify(await tokenOf(ours, theirs))).toBe("unknown_key");
    expect(await verifier.verify(await tokenOf({ ...ours, kid: "one" }, theirs))).toBe("algorithm");
    const confused = jwksOf(jwkOf(ec.publicKey, { kid: ours.kid }));
    const impostor = { kid: ours.kid, algorithm: "ES256", key: ec.privateKey };
    const { verifier: other } = await trustingFile(confused);
    expect(await other.verify(await tokenOf(impostor))).toBe("signature");
  });

  test("expire after the clock skew, at the same instant whether cached or not", async () => {
    const { verifier, clock } = await trustingFile(first);
    const token = await tokenOf(signer, { ...theirs, nbf: NOW + 60, iat: NOW + 60 });
    expect(Identity.is(await verifier.verify(token))).toBe(true);
    const early = await tokenOf(signer, { ...theirs, nbf: NOW + 61 });
    expect(await verifier.verify(early)).toBe("not_yet_valid");
    clock.advance(659_999);
    expect(Identity.is(verifier.verify(token))).toBe(true);
    expect(Identity.is(await verifier.verify(await tokenOf(signer, { ...theirs, n: 1 })))).toBe(
      true,
    );
    clock.advance(1);
    expect(verifier.verify(token)).toBe("expired");
    expect(verifier.verify(await tokenOf(signer, { ...theirs, n: 2 }))).toBe("expired");
  });

  test("are accepted only with the configured algorithms that the key allows", async () => {
    const keys = jwksOf(
      jwkOf(rsa.publicKey, { kid: "one" }),
      jwkOf(later.publicKey, { kid: "ps", alg: "PS256" }),
    );
    const { verifier } = await trustingFile(keys, { algorithms: ["RS256", "PS256"] });
    const verdict = async (kid: string, algorithm: string, key: KeyObject): Promise<unknown> => {
      const result = await verifier.verify(await tokenOf({ kid, algorithm, key }, theirs));
      return Identity.is(result) ? "accepted" : result;
    };
    expect(await verdict("one", "RS256", rsa.privateKey)).toBe("accepted");
    expect(await verdict("one", "PS256", rsa.privateKey)).toBe("accepted");
    expect(await verdict("one", "RS384", rsa.privateKey)).toBe("algorithm");
    expect(await verdict("ps", "PS256", later.privateKey)).toBe("accepted");
    expect(await verdict("ps", "RS256", later.privateKey)).toBe("algorithm");
    const secret = createSecretKey(rsa.publicKey.export({ format: "der", type: "spki" }));
    expect(await verdict("one", "HS256", secret)).toBe("algorithm");
  });

  test("secret, private, weak and unsuitable keys of a set are ignored", async () => {
    const weak = generateKeyPairSync("rsa", { modulusLength: 1024 });
    const secret = createSecretKey(Buffer.alloc(64, 7));
    const { verifier, log } = await trustingFile(
      jwksOf(
        jwkOf(secret, { kid: "secret" }),
        jwkOf(later.privateKey, { kid: "private" }),
        jwkOf(weak.publicKey, { kid: "weak" }),
        jwkOf(later.publicKey, { kid: "enc", use: "enc" }),
        jwkOf(later.publicKey, { kid: "ops", key_ops: ["encrypt"] }),
        jwkOf(later.publicKey, { kid: "alg", alg: "RS512" }),
        { kty: "RSA", kid: "empty" },
        { kty: "AKP", kid: "new" },
        jwkOf(rsa.publicKey, { kid: "one", use: "sig", key_ops: ["verify"] }),
      ),
    );
    for (const kid of ["secret", "private", "enc", "ops", "alg", "empty", "new"]) {
      const token = await tokenOf({ ...laterSigner, kid }, theirs);
      expect(await verifier.verify(token)).toBe("unknown_key");
    }
    const hmac = await tokenOf({ kid: "secret", algorithm: "HS256", key: secret }, theirs);
    expect(await verifier.verify(hmac)).toBe("unknown_key");
    expect(Identity.is(await verifier.verify(await tokenOf(signer, theirs)))).toBe(true);
    expect(log.lines.map(({ fields }) => fields?.["keys"])).toContain(1);
    expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1);
    expect(JSON.stringify(log.lines)).not.toContain(secret.export().toString("base64url"));
  });

  test("two issuers with one name are an error", () => {
    expect(() => trusting({ url: "http://127.0.0.1:1" }, { issuer: "sallyport" })).toThrow();
  });
});
