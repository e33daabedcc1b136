import { isIP } from "node:net";

/** PEM texts of a certificate and its private key. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

const DAYS = 30;

/**
 * A certificate for development that signs itself, on P-256, valid for thirty days.
 *
 * @param names host names and addresses that it is for.
 */
export async function developmentCertificate(names: readonly string[]): Promise<CertificatePair> {
  // Loaded when it is wanted: 20 MB of resident memory that no deployment with a certificate of its own needs.
  const { generate } = await import("selfsigned");
  const notBeforeDate = new Date();
  const notAfterDate = new Date(notBeforeDate.getTime() + DAYS * 86_400_000);
  const made = await generate([{ name: "commonName", value: "Sallyport development" }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notBeforeDate,
    notAfterDate,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: names.map((name) =>
          isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name },
        ),
      },
    ],
  });
  return { cert: made.cert, key: made.private };
}
