import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import type { CertificatePair } from "./development-certificate.ts";

/**
 * Reads a certificate chain and its key from PEM files.
 *
 * @throws ConfigError when a file cannot be read, is not PEM, or the two do not belong together.
 */
export function readCertificate(certFile: string, keyFile: string): CertificatePair {
  const problems: ConfigProblem[] = [];
  const cert = readPem(certFile, problems);
  const key = readPem(keyFile, problems);
  if (cert !== undefined && key !== undefined) {
    const problem = mismatch(cert, key, certFile, keyFile);
    if (problem === undefined) return { cert, key };
    problems.push(problem);
  }
  throw new ConfigError(problems);
}

/** End of a certificate's validity, in seconds since the epoch. */
export function notAfter(cert: string): number {
  return Math.floor(new X509Certificate(cert).validToDate.getTime() / 1000);
}

function readPem(file: string, problems: ConfigProblem[]): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    problems.push({ file, message: `cannot be read (${code})` });
    return undefined;
  }
}

function mismatch(
  cert: string,
  key: string,
  certFile: string,
  keyFile: string,
): ConfigProblem | undefined {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert);
  } catch {
    return { file: certFile, message: "holds no PEM certificate" };
  }
  try {
    return certificate.checkPrivateKey(createPrivateKey(key))
      ? undefined
      : { file: keyFile, message: `is not the key of ${certFile}` };
  } catch {
    return { file: keyFile, message: "holds no PEM private key without a passphrase" };
  }
}
