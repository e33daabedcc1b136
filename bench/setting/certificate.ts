import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "selfsigned";

/** The certificate that every proxy serves: on an elliptic curve, for 127.0.0.1. */
export interface Certificate {
  readonly pem: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** Both in one file, for HAProxy. */
  readonly bothFile: string;
}

export async function makeCertificate(directory: string): Promise<Certificate> {
  const { cert, private: key } = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 7, ip: "127.0.0.1" },
        ],
      },
    ],
  });
  const keep = async (name: string, content: string): Promise<string> => {
    const file = join(directory, name);
    await writeFile(file, content, { mode: 0o600 });
    return file;
  };
  return {
    pem: cert,
    certFile: await keep("tls.crt", cert),
    keyFile: await keep("tls.key", key),
    bothFile: await keep("tls.pem", `${cert.trim()}\n${key.trim()}\n`),
  };
}
