import type { X509Certificate } from "node:crypto";
import { certificatesIn } from "./certificate.ts";

/** A problem of a certificate that does not prevent serving it. */
export interface CertificateWarning {
  /** Whether clients refuse it now, or will within days. */
  readonly urgent: boolean;
  readonly message: string;
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
    const name =
      chain.length === 1 ? "the certificate" : `certificate ${index + 1} of ${chain.length}`;
    const next = chain[index + 1];
    const broken = next !== undefined && !each.checkIssued(next);
    return [
      ...validityWarnings(each, name, nowMs),
      ...(broken ? [{ urgent: false, message: `${name} is not issued by the next` }] : []),
    ];
  });
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
    return [{ urgent: true, message: `${name} has ended at ${validToDate.toISOString()}` }];
  }
  if (days >= SOON_DAYS) return [];
  return [{ urgent: days < URGENT_DAYS, message: `${name} ends in ${days} days` }];
}
