import { readFileSync } from "node:fs";
import type { generate } from "selfsigned";

interface KeyPair {
  readonly key: string;
  readonly cert: string;
}

export interface TestCertificates {
  /** Certificate of the authority that issued the others, PEM. */
  readonly ca: string;
  /** For 127.0.0.1, ::1 and localhost. */
  readonly server: KeyPair;
  /** Only for other.example.com. */
  readonly other: KeyPair;
  /** For client authentication, CN "sallyport-test-client". */
  readonly client: KeyPair;
}

type Extensions = NonNullable<NonNullable<Parameters<typeof generate>[1]>["extensions"]>;

/** The environment variable in which `made-once.ts` passes the file with the certificates of this run. */
export const CERTIFICATES = "VITEST_CERTIFICATES";

let made: Promise<TestCertificates> | undefined;

/** Returns the certificates of this run. Without any, the first call creates them. */
export function testCertificates(): Promise<TestCertificates> {
  made ??= readOrMake();
  return made;
}

async function readOrMake(): Promise<TestCertificates> {
  const file = process.env[CERTIFICATES];
  return file === undefined ? makeCertificates() : JSON.parse(readFileSync(file, "utf8"));
}

/** Creates an authority with two server certificates and one client certificate. */
export async function makeCertificates(): Promise<TestCertificates> {
  // Loaded only here, because loading it takes longer than creating the certificates.
  const { generate } = await import("selfsigned");
  const authority = await generate([{ name: "commonName", value: "Sallyport Test CA" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const ca = { key: authority.private, cert: authority.cert };
  const issue = async (name: string, ...more: Extensions): Promise<KeyPair> => {
    const { private: key, cert } = await generate([{ name: "commonName", value: name }], {
      keyType: "ec",
      algorithm: "sha256",
      ca,
      extensions: [
        { name: "basicConstraints", cA: false, critical: true },
        { name: "keyUsage", digitalSignature: true, critical: true },
        ...more,
      ],
    });
    return { key, cert };
  };
  const altNames = [
    { type: 2, value: "localhost" },
    { type: 7, ip: "127.0.0.1" },
    { type: 7, ip: "::1" },
  ] as const;
  return {
    ca: ca.cert,
    server: await issue(
      "localhost",
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [...altNames] },
    ),
    other: await issue(
      "other.example.com",
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: [{ type: 2, value: "other.example.com" }] },
    ),
    client: await issue("sallyport-test-client", { name: "extKeyUsage", clientAuth: true }),
  };
}
