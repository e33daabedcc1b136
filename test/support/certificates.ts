import { generate } from "selfsigned";

interface KeyPair {
  readonly key: string;
  readonly cert: string;
}

export interface TestCertificates {
  /** Certificate of the authority that signed the others, PEM. */
  readonly ca: string;
  /** For 127.0.0.1, ::1 and localhost. */
  readonly server: KeyPair;
  /** For client authentication, CN "sallyport-test-client". */
  readonly client: KeyPair;
}

type Extensions = NonNullable<NonNullable<Parameters<typeof generate>[1]>["extensions"]>;

let made: Promise<TestCertificates> | undefined;

/** An authority with one server and one client certificate, made on the first call. */
export function testCertificates(): Promise<TestCertificates> {
  made ??= make();
  return made;
}

async function make(): Promise<TestCertificates> {
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
    client: await issue("sallyport-test-client", { name: "extKeyUsage", clientAuth: true }),
  };
}
