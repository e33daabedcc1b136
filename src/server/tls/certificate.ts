import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { ConfigError, type ConfigProblem } from "../../core/config-problem.ts";
import type { CertificatePair } from "./development-certificate.ts";
import { SUITES } from "./tls-listener.ts";
import { systemCode } from "../../lib/text/error-code.ts";

/** A problem of a certificate that does not prevent serving it. */
interface CertificateWarning {
  /** Whether clients refuse it now, or will within days. */
  readonly urgent: boolean;
  readonly message: string;
  readonly hint?: string;
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;
const URGENT_DAYS = 7;

/**
 * Warns about problems that clients will notice: a certificate that is not valid now or expires within 30 days, and a
 * chain in which a certificate is not issued by the next one.
 *
 * @param cert PEM text that `readCertificate` has read.
 * @param nowMs wall clock.
 */
export function certificateWarnings(cert: string, nowMs: number): CertificateWarning[] {
  const chain = certificatesIn(cert, "");
  return chain.flatMap((each, index) => {
    const name = nameOf(index, chain);
    const next = chain[index + 1];
    const broken = next !== undefined && !each.checkIssued(next);
    return [
      ...validityWarnings(each, name, nowMs),
      ...(broken ? [{ urgent: false, message: `${name} is not issued by the next` }] : []),
    ];
  });
}

/** Warns about the validity of authorities. It is urgent only if there is none that is valid for longer. */
export function authorityWarnings(text: string, nowMs: number): CertificateWarning[] {
  const all = certificatesIn(text, "");
  const found = all.flatMap((each, index) => validityWarnings(each, nameOf(index, all), nowMs));
  const isUrgent = found.filter(({ urgent }) => urgent).length === all.length;
  return found.map(({ message }) => ({ message, urgent: isUrgent }));
}

function nameOf(index: number, chain: readonly X509Certificate[]): string {
  return chain.length === 1 ? "the certificate" : `certificate ${index + 1} of ${chain.length}`;
}

function validityWarnings(
  { validFromDate, validToDate }: X509Certificate,
  name: string,
  nowMs: number,
): CertificateWarning[] {
  if (validFromDate.getTime() > nowMs) {
    return [
      { urgent: true, message: `${name} is not valid before ${validFromDate.toISOString()}` },
    ];
  }
  const days = Math.floor((validToDate.getTime() - nowMs) / DAY_MS);
  if (days < 0) {
    const message = `${name} expired on ${validToDate.toISOString().slice(0, 10)}`;
    return [{ urgent: true, message, hint: "renew it: clients refuse it" }];
  }
  if (days >= SOON_DAYS) return [];
  return [{ urgent: days < URGENT_DAYS, message: `${name} ends in ${days} days` }];
}

/** Returns the text of a file. Throws the system's error, or a self-explanatory `ConfigError`. */
export type ReadText = (file: string) => string;

/**
 * Reads a certificate chain and its key from PEM files.
 *
 * @throws ConfigError if a file cannot be read or is not PEM, the key is weak or does not match, the chain does not
 * start with the certificate of the key, or OpenSSL rejects the pair.
 */
export function readCertificate(
  certFile: string,
  keyFile: string,
  textOf: ReadText,
): CertificatePair {
  const problems: ConfigProblem[] = [];
  const cert = readPem(certFile, textOf, problems);
  const key = readPem(keyFile, textOf, problems);
  if (cert === undefined || key === undefined) throw new ConfigError(problems);
  checkPair(cert, key, certFile, keyFile);
  return { cert, key };
}

/**
 * Reads CA certificates from a PEM file and returns its text. Node would ignore anything that is not a certificate, and
 * then trust no one.
 *
 * @throws ConfigError if the file cannot be read, holds no certificate, or a broken one.
 */
export function readAuthorities(file: string, textOf: ReadText): string {
  const problems: ConfigProblem[] = [];
  const text = readPem(file, textOf, problems);
  if (text === undefined) throw new ConfigError(problems);
  certificatesIn(text, file);
  return text;
}

/** Returns the end of a certificate's validity, in seconds since the epoch. */
export function notAfter(cert: string): number {
  return Math.floor(new X509Certificate(cert).validToDate.getTime() / 1000);
}

/** Returns the earliest end of the certificates in a PEM text, in seconds since the epoch. */
export function earliestEnd(text: string): number {
  const ends = certificatesIn(text, "").map(({ validToDate }) => validToDate.getTime());
  return Math.floor(Math.min(...ends) / 1_000);
}

/** PEM text that replaces another; undefined where there is or was none. */
interface ReplacedPem {
  readonly file: string | undefined;
  readonly before: string | undefined;
  readonly next: string | undefined;
  /** Whether one valid certificate is enough; otherwise the first one counts, which is that of the key. */
  readonly authorities: boolean;
}

/**
 * Refuses certificates that are not valid now in place of valid ones: peers would refuse them, while they accept those
 * in force.
 *
 * @throws ConfigError with all problems.
 */
export function keepValid(replaced: readonly ReplacedPem[], nowMs: number): void {
  const problems = replaced.flatMap(({ file = "", before, next, authorities }): ConfigProblem[] => {
    if (before === undefined || next === undefined || before === next) return [];
    const judged = (text: string): X509Certificate[] =>
      certificatesIn(text, file).slice(0, authorities ? Infinity : 1);
    const valid = ({ validFromDate, validToDate }: X509Certificate): boolean =>
      validFromDate.getTime() <= nowMs && nowMs <= validToDate.getTime();
    const [first] = judged(next);
    if (first === undefined || judged(next).some(valid) || !judged(before).some(valid)) return [];
    const [from, to] = [first.validFromDate, first.validToDate].map((date) => date.toISOString());
    const message = `is not valid now, only from ${from} to ${to}: the one in force is, and stays`;
    return [{ file, message }];
  });
  if (problems.length > 0) throw new ConfigError(problems);
}

const CERTIFICATE =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----.*?-----END (?:X509 |TRUSTED )?CERTIFICATE-----/gs;

/**
 * Returns all certificates of a PEM text, in order. Throws a `ConfigError` that names the file if it contains none, or a
 * broken one.
 */
export function certificatesIn(text: string, file: string): X509Certificate[] {
  const blocks = text.match(CERTIFICATE);
  if (blocks === null) throw unusable(file, "holds no PEM certificate");
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch {
      throw unusable(file, `certificate ${index + 1} of ${blocks.length} cannot be read`);
    }
  });
}

function readPem(file: string, textOf: ReadText, problems: ConfigProblem[]): string | undefined {
  try {
    return textOf(file);
  } catch (error) {
    if (error instanceof ConfigError) problems.push(...error.problems);
    else problems.push({ file, message: `cannot be read (${systemCode(error) ?? "unreadable"})` });
    return undefined;
  }
}

/** @throws ConfigError with the first reason why clients could not be served with the pair. */
function checkPair(cert: string, pem: string, certFile: string, keyFile: string): void {
  const chain = certificatesIn(cert, certFile);
  const key = privateKeyIn(pem, keyFile);
  const weakness = keyWeakness(key);
  if (weakness !== undefined) throw unusable(keyFile, weakness);
  const index = chain.findIndex((each) => each.checkPrivateKey(key));
  if (index === -1) throw unusable(keyFile, `is not the key of ${certFile}`);
  if (index > 0) {
    const message = `the certificate of the key stands at ${index + 1} of ${chain.length}: it must be the first`;
    throw unusable(certFile, message);
  }
  // The own signature of a root that ends a chain is never checked; that of a self-signed certificate is what is pinned.
  const forgeable = chain.findIndex(
    (each, place) => hasWeakSignature(each) && (place === 0 || !each.checkIssued(each)),
  );
  if (forgeable !== -1) {
    const { signatureAlgorithm } = chain[forgeable] ?? {};
    const message = `certificate ${forgeable + 1} of ${chain.length} is signed with ${signatureAlgorithm}, which clients refuse`;
    throw unusable(certFile, message);
  }
  try {
    createSecureContext({ cert, key: pem, ciphers: SUITES, minVersion: "TLSv1.2" });
  } catch (error) {
    // Only the code of OpenSSL is safe to report.
    throw unusable(certFile, `cannot be served (${systemCode(error) ?? "unreadable"})`);
  }
}

function privateKeyIn(pem: string, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch {
    throw unusable(file, "holds no PEM private key without a passphrase");
  }
}

function unusable(file: string, message: string): ConfigError {
  return new ConfigError([{ file, message }]);
}

/** Describes a key with less than 112 bits of security (NIST SP 800-57 part 1, §5.6). */
function keyWeakness({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string | undefined {
  const bits = asymmetricKeyDetails?.modulusLength ?? 0;
  switch (asymmetricKeyType) {
    case "rsa":
    case "rsa-pss":
      return bits < 2048 ? `holds an RSA key of ${bits} bits: 2048 is the least` : undefined;
    case "ec":
    case "ed25519":
      return undefined;
    default:
      return `holds a key of the kind ${asymmetricKeyType}: RSA, EC or Ed25519 is needed`;
  }
}

/** Whether a signature uses a digest with known collisions (RFC 6194, RFC 6151). */
function hasWeakSignature({ signatureAlgorithm = "" }: X509Certificate): boolean {
  return /^(?:md|sha1|dsa|ecdsa-with-sha1)/i.test(signatureAlgorithm);
}
