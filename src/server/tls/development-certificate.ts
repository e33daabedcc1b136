import { isIP } from "node:net";

/** PEM texts of a certificate and its private key. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Creates a self-signed development certificate on P-256.
 *
 * @param names the host names and addresses to certify.
 * @param days its validity.
 */
export async function createDevelopmentCertificate(
  names: readonly string[],
  days = 30,
): Promise<CertificatePair> {
  // Loaded on demand: it takes 20 MB of resident memory, which no deployment with its own certificate needs.
  const { generate } = await import("selfsigned");
  const notBeforeDate = new Date();
  const notAfterDate = new Date(notBeforeDate.getTime() + days * 86_400_000);
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
