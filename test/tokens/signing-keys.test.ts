import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { utimes } from "node:fs/promises";
import { MessageChannel } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { Identity } from "../../src/core/request/identity.ts";
import { ALGORITHMS, isSigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import { readKeyFiles } from "../../src/tokens/keys/key-directory.ts";
import type { SigningKeys } from "../../src/tokens/keys/key-ring.ts";
import { loadSigningKeys } from "../../src/tokens/keys/watched-keys.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { ecPair, ownKeys, pem, signerOf, tokenOf, verifierFor } from "./fixture.ts";
import { rsa, secretJwk, loading, thumbprint } from "./key-directory.ts";

describe("an ephemeral key", () => {
  test.each(Object.keys(ALGORITHMS).filter(isSigningAlgorithm))("%s", async (algorithm) => {
    const log = recordedLog();
    const keys = await loadSigningKeys({ algorithm, log });
    expect(log.lines.map(({ level }) => level)).toEqual(["warn"]);
    expect(signerOf(keys).algorithm).toBe(algorithm);
    const { verifier } = verifierFor(keys);
    const identity = await verifier.verify(await tokenOf(signerOf(keys)));
    expect(Identity.is(identity)).toBe(true);
  });

  test("can be posted to a thread", async () => {
    const keys = await ownKeys();
    const { port1, port2 } = new MessageChannel();
    const arrived = new Promise<SigningKeys>((resolve) => port2.once("message", resolve));
    port1.postMessage(keys);
    const { verifier } = verifierFor(await arrived);
    expect(Identity.is(await verifier.verify(await tokenOf(signerOf(keys))))).toBe(true);
    port1.close();
  });
});

describe("which key signs", () => {
  async function signerAmong(files: Record<string, { content: string; age: number }>) {
    await using directory = await temporaryDirectory();
    for (const [name, { content, age }] of Object.entries(files)) {
      const made = 1_700_000_000 - age;
      await utimes(await directory.write(name, content), made, made);
    }
    const keys = await loadSigningKeys({
      algorithm: "ES256",
      files: await readKeyFiles(directory.path),
      log: recordedLog(),
    });
    expect(keys.verification).toHaveLength(Object.keys(files).length);
    return signerOf(keys).kid;
  }
  const [one, two] = [ecPair(), ecPair()];
  const jwk = (key: KeyObject, more: object): string =>
    JSON.stringify({ ...key.export({ format: "jwk" }), ...more });

  test("the newest file", async () => {
    const files = {
      b: { content: pem(one.privateKey), age: 3600 },
      a: { content: pem(two.privateKey), age: 0 },
    };
    expect(await signerAmong(files)).toBe(await thumbprint(two.publicKey));
  });

  test("the last name in natural order, if both were written in the same minute", async () => {
    const files = {
      "key-10": { content: pem(one.privateKey), age: 2 },
      "key-9": { content: pem(two.privateKey), age: 0 },
    };
    expect(await signerAmong(files)).toBe(await thumbprint(one.publicKey));
  });

  test("`iat` of a JWK takes precedence over the age of the file", async () => {
    const files = {
      "a.jwk": { content: jwk(one.privateKey, { iat: 1_600_000_000 }), age: 0 },
      "b.pem": { content: pem(two.privateKey), age: 3600 },
    };
    expect(await signerAmong(files)).toBe(await thumbprint(two.publicKey));
  });

  test("only a private key for the configured algorithm", async () => {
    const files = {
      old: { content: pem(one.privateKey), age: 3600 },
      public: { content: pem(two.publicKey), age: 0 },
      rsa: { content: pem(rsa.privateKey), age: 0 },
      p384: { content: pem(ecPair("P-384").privateKey), age: 0 },
      secret: { content: secretJwk(32), age: 0 },
    };
    expect(await signerAmong(files)).toBe(await thumbprint(one.publicKey));
  });

  test("all others verify, each with the algorithm of its type", async () => {
    const others = {
      "ed.pem": pem(generateKeyPairSync("ed25519").publicKey),
      "p521.pem": pem(ecPair("P-521").publicKey),
      "rsa.pem": pem(rsa.publicKey),
      "ps.jwk": JSON.stringify({
        ...generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ format: "jwk" }),
        alg: "PS384",
      }),
    };
    const { keys } = await loading({ "own.pem": pem(one.privateKey), ...others });
    expect(keys.verification.flatMap(({ algorithms }) => algorithms).toSorted()).toEqual([
      "ES256",
      "ES512",
      "EdDSA",
      "PS384",
      "RS256",
    ]);
  });

  test("one key in two files counts once, with the algorithm that it signs with", async () => {
    const files = {
      "a.pem": pem(rsa.privateKey),
      "z.jwk": JSON.stringify({ ...rsa.publicKey.export({ format: "jwk" }), alg: "PS256" }),
    };
    const { keys } = await loading(files, "RS512");
    expect(keys.verification.map(({ algorithms }) => algorithms)).toEqual([["RS512"]]);
  });
});
