import { createSecretKey, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto";
import { chmod, mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../../src/core/config-problem.ts";
import { Identity } from "../../src/core/request/identity.ts";
import type { SigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import { readKeyFiles, writeExpiry } from "../../src/tokens/keys/key-directory.ts";
import { loadSigningKeys } from "../../src/tokens/keys/watched-keys.ts";
import { namedPipe } from "../support/named-pipe.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { ecPair, pem, signerOf, tokenOf, verifierFor } from "./fixture.ts";
import { rsa, rsaJwk, secretJwk, loading, refusal, thumbprint } from "./key-directory.ts";

describe("key files", () => {
  const ec = ecPair();
  test.each<[string, string | Buffer, SigningAlgorithm, KeyObject]>([
    ["PKCS#8", pem(ec.privateKey), "ES256", ec.publicKey],
    ["SEC1", ec.privateKey.export({ format: "pem", type: "sec1" }), "ES256", ec.publicKey],
    [
      "SEC1 after the curve's parameters",
      `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${ec.privateKey.export({ format: "pem", type: "sec1" })}`,
      "ES256",
      ec.publicKey,
    ],
    ["PKCS#1", rsa.privateKey.export({ format: "pem", type: "pkcs1" }), "PS256", rsa.publicKey],
    ["JWK", JSON.stringify(rsaJwk), "RS512", rsa.publicKey],
  ])("%s signs, and its kid is the thumbprint", async (_kind, content, algorithm, publicKey) => {
    const { keys } = await loading({ key: content }, algorithm);
    const signer = signerOf(keys);
    expect(signer.algorithm).toBe(algorithm);
    expect(signer.kid).toBe(await thumbprint(publicKey));
    const { verifier } = verifierFor(keys);
    expect(Identity.is(await verifier.verify(await tokenOf(signer)))).toBe(true);
  });

  test("the kid is that of RFC 7638 §3.1", async () => {
    const n =
      "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    const { keys, log } = await loading({ "k.jwk": JSON.stringify({ kty: "RSA", n, e: "AQAB" }) });
    expect(keys.verification.map(({ kid, algorithms }) => [kid, algorithms])).toEqual([
      ["NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs", ["RS256"]],
    ]);
    expect(keys.signing).toBeUndefined();
    expect(log.lines.map(({ level }) => level)).toContain("warn");
  });

  test("secrets: the configured algorithm signs, the length is that of its hash", async () => {
    const { keys } = await loading({ "secret.json": secretJwk(64) }, "HS512");
    const { verifier } = verifierFor(keys);
    expect(Identity.is(await verifier.verify(await tokenOf(signerOf(keys))))).toBe(true);
    expect(await refusal({ "secret.json": secretJwk(63) }, "HS512")).toHaveLength(1);
  });

  test("ignores names with a leading dot, and directories", async () => {
    await using directory = await temporaryDirectory();
    await mkdir(join(directory.path, "..2026"));
    await mkdir(join(directory.path, "old"));
    await directory.write("old/broken.pem", "no key");
    await directory.write(".hidden", "no key");
    await directory.write("..2026/key.pem", pem(ec.privateKey));
    await symlink("..2026", join(directory.path, "..data"));
    await symlink("..data/key.pem", join(directory.path, "key.pem"));
    const files = await readKeyFiles(directory.path);
    const options = { algorithm: "ES256", files, log: recordedLog() } as const;
    expect((await loadSigningKeys(options)).verification).toHaveLength(1);
  });

  test("refuses what is no small file, without waiting for a writer or an end", async () => {
    await using directory = await temporaryDirectory();
    await namedPipe(join(directory.path, "a-pipe"));
    // Its size is 0, and it has megabytes.
    await symlink("/proc/kallsyms", join(directory.path, "b-endless"));
    await directory.write("c-large", "x".repeat(65_537));
    const { files } = await readKeyFiles(directory.path);
    const larger = "larger than 64KiB: is it the right file?";
    expect(files.map(({ content }) => ("fault" in content ? content.fault : "read"))).toEqual([
      ...["not a regular file", larger, larger],
    ]);
  });

  test("logs once that others can read a private key", async () => {
    await using directory = await temporaryDirectory();
    await chmod(await directory.write("a.pem", pem(ec.privateKey)), 0o640);
    await chmod(await directory.write("b.pem", pem(ecPair().privateKey)), 0o604);
    await chmod(await directory.write("c.pem", pem(ecPair().publicKey)), 0o644);
    const log = recordedLog();
    const files = await readKeyFiles(directory.path);
    await loadSigningKeys({ algorithm: "ES256", files, log });
    const warnings = log.lines.filter(({ level }) => level === "warn");
    expect(warnings.map(({ fields }) => fields?.["files"])).toEqual([
      [join(directory.path, "b.pem"), join(directory.path, "a.pem")],
    ]);
  });
});

describe("is refused at startup with the name of the file, without its content", () => {
  const weak = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
  const exponent3 = generateKeyPairSync("rsa", { modulusLength: 2048, publicExponent: 3 });
  const good = ecPair().privateKey.export({ format: "jwk" });
  const encrypted = ecPair().privateKey.export({
    format: "pem",
    type: "pkcs8",
    cipher: "aes-256-cbc",
    passphrase: "x",
  });
  test.each<[string, string | Buffer]>([
    ["RSA of 1024 bits", pem(weak)],
    [
      "a public RSA key of 1024 bits",
      JSON.stringify({
        ...weak.export({ format: "jwk" }),
        d: undefined,
        p: undefined,
        q: undefined,
        dp: undefined,
        dq: undefined,
        qi: undefined,
      }),
    ],
    ["an RSA exponent of 3", pem(exponent3.publicKey)],
    ["an RSA-PSS key", pem(generateKeyPairSync("rsa-pss", { modulusLength: 2048 }).privateKey)],
    ["the curve of Bitcoin", pem(ecPair("secp256k1").privateKey)],
    ["a key for agreement", pem(generateKeyPairSync("x25519").privateKey)],
    ["a secret of 31 bytes", secretJwk(31)],
    ["an empty secret", '{"kty":"oct","k":""}'],
    ["a secret that is not base64url", '{"kty":"oct","k":"c2VjcmV0IHRleHQ="}'],
    ["text", "secret text"],
    ["nothing", ""],
    ["a broken PEM", "-----BEGIN PRIVATE KEY-----\nc2VjcmV0IHRleHQ=\n-----END PRIVATE KEY-----"],
    ["an encrypted PEM", encrypted],
    ["a certificate", "-----BEGIN CERTIFICATE-----\nc2VjcmV0IHRleHQ=\n-----END CERTIFICATE-----"],
    ["two keys in one file", pem(ecPair().privateKey) + pem(ecPair().privateKey)],
    ["a set of keys", JSON.stringify({ keys: [good] })],
    ["broken JSON", '{"kty":"oct","k":secret text}'],
    ["a member twice", `{"kty":"EC",${JSON.stringify(good).slice(1)}`],
    ["an alg of another kind", JSON.stringify({ ...good, alg: "RS256" })],
    ["an alg that nobody knows", JSON.stringify({ ...good, alg: "none" })],
    ["a key for encryption", JSON.stringify({ ...good, use: "enc" })],
    [
      "a private part of another key",
      JSON.stringify({ ...good, d: ecPair().privateKey.export({ format: "jwk" }).d }),
    ],
    ["too large a file", " ".repeat(70_000)],
  ])("%s", async (_name, content) => {
    const problems = await refusal({ "good.pem": pem(ecPair().privateKey), "bad.key": content });
    expect(problems).toHaveLength(1);
    expect(problems[0]?.file).toMatch(/bad\.key$/);
    expect(problems[0]?.source).toBeUndefined();
    expect(problems[0]?.message).not.toMatch(/c2Vj|secret text/);
  });

  test("reports all problems at once", async () => {
    expect(await refusal({ a: "x", b: "y", c: pem(ecPair().privateKey) })).toHaveLength(2);
  });

  test("an empty directory, a missing one, and one without a key for the algorithm", async () => {
    expect(await refusal({})).toHaveLength(1);
    expect(await refusal({ "rsa.pem": pem(rsa.privateKey) }, "ES256")).toHaveLength(1);
    await expect(readKeyFiles("/nowhere/at/all")).rejects.toBeInstanceOf(ConfigError);
  });

  test("a secret that is long enough only for another algorithm", async () => {
    const key = createSecretKey(randomBytes(32)).export({ format: "jwk" });
    expect(
      await refusal({ "s.jwk": JSON.stringify({ ...key, alg: "HS384" }) }, "HS256"),
    ).toHaveLength(1);
  });
});

test("a key file that is being written gets no expiry, and stays as it is", async () => {
  await using directory = await temporaryDirectory();
  const path = await directory.write("a.jwk", JSON.stringify(rsaJwk));
  const found = {
    ...({ file: path, key: rsa.privateKey, algorithm: "RS256", madeAt: 0 } as const),
    signsFrom: 0,
    verifiesUntil: Infinity,
    exposed: false,
  };
  await directory.write("a.jwk", '{"kty":');
  await expect(writeExpiry(found, 1)).rejects.toThrow("holds no key now");
  expect(await readdir(directory.path)).toEqual(["a.jwk"]);
  expect(await readFile(path, "utf8")).toBe('{"kty":');
});
