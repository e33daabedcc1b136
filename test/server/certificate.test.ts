import { readFileSync } from "node:fs";
import { createPrivateKey } from "node:crypto";
import { join } from "node:path";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ConfigError } from "../../src/core/config-problem.ts";
import { notAfter, readCertificate } from "../../src/server/tls/certificate.ts";
import { createDevelopmentCertificate } from "../../src/server/tls/development-certificate.ts";
import { testCertificates, type TestCertificates } from "../support/certificates.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

let pairs: TestCertificates;
let directory: TemporaryDirectory;
beforeAll(async () => {
  pairs = await testCertificates();
  directory = await temporaryDirectory();
  const { server, client, ca } = pairs;
  const key = createPrivateKey(server.key);
  const encrypted = key.export({
    type: "pkcs8",
    format: "pem",
    cipher: "aes-256-cbc",
    passphrase: "s3cret",
  });
  const files = {
    "server.crt": server.cert,
    "server.key": server.key,
    "client.key": client.key,
    "chain.crt": `${server.cert}\n${ca}`,
    "encrypted.key": encrypted,
    "text.crt": "not a certificate, s3cret",
    "text.key": "not a key, s3cret",
    "broken.crt": server.cert.replace(/[A-Za-z0-9+/]{20}/, "!!!!"),
    "der.crt": Buffer.from([0x30, 0x82, 0x01, 0x02]),
  };
  for (const [name, content] of Object.entries(files)) await directory.write(name, content);
});
afterAll(() => directory.close());

const file = (name: string): string => join(directory.path, name);
const textOf = (path: string): string => readFileSync(path, "utf8");

function faultsOf(certFile: string, keyFile: string): string[] {
  try {
    readCertificate(file(certFile), file(keyFile), textOf);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.message).not.toContain("s3cret");
    return error.problems.map((problem) => problem.file);
  }
  throw new Error("nothing was wrong");
}

describe("a certificate", () => {
  test("is read with its key, also as a chain", () => {
    expect(readCertificate(file("server.crt"), file("server.key"), textOf)).toEqual(pairs.server);
    const { cert } = readCertificate(file("chain.crt"), file("server.key"), textOf);
    expect(cert.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  });

  test.each([
    ["server.crt", "client.key", ["client.key"]],
    ["missing.crt", "server.key", ["missing.crt"]],
    ["server.crt", "missing.key", ["missing.key"]],
    ["missing.crt", "missing.key", ["missing.crt", "missing.key"]],
    [".", "server.key", ["."]],
    ["text.crt", "server.key", ["text.crt"]],
    ["broken.crt", "server.key", ["broken.crt"]],
    ["der.crt", "server.key", ["der.crt"]],
    ["server.crt", "text.key", ["text.key"]],
    ["server.crt", "encrypted.key", ["encrypted.key"]],
    ["server.crt", "server.crt", ["server.crt"]],
    ["server.key", "server.key", ["server.key"]],
  ])("%s with %s is refused, naming %j", (certFile, keyFile, files) => {
    expect(faultsOf(certFile, keyFile)).toEqual(files.map(file));
  });
});

describe("a signature with SHA-1", () => {
  const made = async (
    algorithm: "sha1" | "sha256",
    ca?: { readonly key: string; readonly cert: string },
  ) => {
    const { private: key, cert } = await generate([{ name: "commonName", value: "a" }], {
      keyType: "ec",
      algorithm,
      ...(ca === undefined ? {} : { ca }),
      extensions: [{ name: "basicConstraints", cA: true }],
    });
    return { key, cert };
  };
  const write = async (name: string, { key, cert }: { key: string; cert: string }) => {
    await directory.write(`${name}.crt`, cert);
    await directory.write(`${name}.key`, key);
  };

  test("is refused in a certificate, whether an authority or itself issued it", async () => {
    const root = await made("sha256");
    await write("self", await made("sha1"));
    await write("issued", await made("sha1", root));
    for (const name of ["self", "issued"]) {
      expect(faultsOf(`${name}.crt`, `${name}.key`)).toEqual([file(`${name}.crt`)]);
    }
  });

  test("of a root does not matter behind a certificate: nobody checks it", async () => {
    const root = await made("sha1");
    const { key, cert } = await made("sha256", root);
    await write("chain-of-root", { key, cert: `${cert}\n${root.cert}` });
    const read = readCertificate(file("chain-of-root.crt"), file("chain-of-root.key"), textOf);
    expect(read.key).toBe(key);
  });
});

test("the expiry of a certificate is in whole seconds since the epoch", async () => {
  const { cert } = await createDevelopmentCertificate(["localhost"]);
  const thirtyDays = Date.now() / 1000 + 30 * 86_400;
  expect(Number.isInteger(notAfter(cert))).toBe(true);
  expect(Math.abs(notAfter(cert) - thirtyDays)).toBeLessThan(120);
});
