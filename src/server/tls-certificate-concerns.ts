import type { X509Certificate } from "node:crypto";
import { certificatesIn } from "./certificate.ts";

/** What is wrong with a certificate and does not keep it from being served. */
export interface CertificateConcern {
  /** Clients refuse it now, or will within days. */
  readonly urgent: boolean;
  readonly message: string;
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;
const URGENT_DAYS = 7;

/**
 * Looks for what clients will stumble over: a certificate that is not valid now or ends within 30 days, and a chain in which
 * one is not issued by the next.
 *
 * @param cert PEM text that `readCertificate` has read. @param nowMs wall clock.
 */
export function certificateConcerns(cert: string, nowMs: number): CertificateConcern[] {
  const chain = certificatesIn(cert, "");
  return chain.flatMap((each, index) => {
    const name =
      chain.length === 1 ? "the certificate" : `certificate ${index + 1} of ${chain.length}`;
    const next = chain[index + 1];
    const broken = next !== undefined && !each.checkIssued(next);
    return [
      ...validityConcerns(each, name, nowMs),
      ...(broken ? [{ urgent: false, message: `${name} is not issued by the next` }] : []),
    ];
  });
}

function validityConcerns(
  { validFromDate, validToDate }: X509Certificate,
  name: string,
  nowMs: number,
): CertificateConcern[] {
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
