import type { X509Certificate } from "node:crypto";
import { GateError } from "../../core/request/errors.ts";
import { CERTIFICATE_ISSUER, type Identity, mintIdentity } from "../../core/request/identity.ts";
import type { TokenRefusal, TokenVerdict } from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import type { ClientCertificate } from "../../server/tls/client-certificate.ts";
import type { RevocationList } from "../revocation/revocation-list.ts";

const MISSING: TokenRefusal = {
  step: "bearer",
  reason: "missing",
  detail: "there is no client certificate",
};
const NAMELESS: TokenRefusal = {
  step: "form",
  reason: "malformed",
  detail: "the certificate has neither a SPIFFE ID nor a subject",
};
const EXPIRED: TokenRefusal = { step: "claims", reason: "expired" };

/** The most certificates of a client that are looked at, besides its own. */
const MOST_SENT = 8;

export interface CertificatesOptions {
  /** The authorities for clients that are in force. */
  readonly authorities: readonly X509Certificate[];
  /** Whether connections may be open whose certificates were accepted by other authorities. */
  readonly replacesOthers: boolean;
  readonly revocations: RevocationList;
  readonly clock: Clock;
}

/** Makes callers of the client certificates that TLS has verified, as long as their authority is in force. */
export class Certificates {
  readonly #options: CertificatesOptions;
  readonly #accepted = new WeakMap<ClientCertificate, boolean>();
  readonly #callers = new WeakMap<ClientCertificate, Identity>();

  constructor(options: CertificatesOptions) {
    this.#options = options;
  }

  /**
   * Refuses the certificate of an open connection if no authority that is in force has issued it, as the handshake would.
   *
   * @throws GateError `invalid_certificate`.
   */
  check(certificate: ClientCertificate): void {
    if (!this.#options.replacesOthers) return;
    let accepted = this.#accepted.get(certificate);
    if (accepted === undefined) {
      accepted = this.#leadsToAuthority(certificate.x509, sentWith(certificate.x509));
      this.#accepted.set(certificate, accepted);
    }
    if (!accepted) throw new GateError("invalid_certificate", { reason: "unknown_key" });
  }

  /** The caller whom a certificate names, or why it names none. @param certificate undefined if the client has none. */
  verify(certificate: ClientCertificate | undefined): TokenVerdict {
    if (certificate === undefined) return MISSING;
    let caller = this.#callers.get(certificate);
    if (caller === undefined) {
      const identity = identityOf(certificate);
      if (identity === undefined) return NAMELESS;
      this.#callers.set(certificate, (caller = identity));
    }
    const { clock, revocations } = this.#options;
    if (clock.now() >= caller.acceptedUntil) return EXPIRED;
    const by = revocations.covering(caller);
    return by === undefined
      ? caller
      : { step: "revocation", reason: "revoked", revoked: { caller, by } };
  }

  /**
   * Whether valid authorities lead from a certificate to one that has signed itself, as OpenSSL requires.
   *
   * @param tried the authorities that were followed. None is twice: a client can send some that have certified each other many times.
   */
  #leadsToAuthority(
    certificate: X509Certificate,
    sent: readonly X509Certificate[],
    tried = new Set<X509Certificate>(),
  ): boolean {
    const { authorities, clock } = this.#options;
    if (certificate.checkIssued(certificate)) {
      return authorities.some(({ raw }) => raw.equals(certificate.raw));
    }
    const now = clock.now();
    return [...authorities, ...sent].some(
      (issuer) =>
        !tried.has(issuer) &&
        // Of those in the file, TLS does not demand that they say so: certificates of version 1 cannot.
        (issuer.ca || authorities.includes(issuer)) &&
        issuer.validFromDate.getTime() <= now &&
        now <= issuer.validToDate.getTime() &&
        certificate.checkIssued(issuer) &&
        hasSigned(issuer, certificate) &&
        this.#leadsToAuthority(issuer, sent, tried.add(issuer)),
    );
  }
}

/** Returns the intermediate authorities that a client has sent with its certificate. */
function sentWith({ issuerCertificate }: X509Certificate): readonly X509Certificate[] {
  const sent: X509Certificate[] = [];
  for (let each = issuerCertificate; each !== undefined; each = each.issuerCertificate) {
    if (sent.length === MOST_SENT) break;
    sent.push(each);
  }
  return sent;
}

/** A key that cannot be read has signed nothing. */
function hasSigned(issuer: X509Certificate, certificate: X509Certificate): boolean {
  try {
    return certificate.verify(issuer.publicKey);
  } catch {
    return false;
  }
}

function identityOf(certificate: ClientCertificate): Identity | undefined {
  const { spiffeId, dnsNames, validFrom, validTo } = certificate;
  const subject = spiffeId ?? certificate.subject;
  if (subject === "") return undefined;
  return mintIdentity({
    subject,
    groups: [],
    issuer: CERTIFICATE_ISSUER,
    // As with tokens, a revocation of the subject ends what was issued before.
    issuedAt: Math.floor(validFrom / 1_000),
    expiresAt: Math.floor(validTo / 1_000),
    acceptedUntil: validTo,
    claims: new Map<string, string | readonly string[]>([
      ["sub", subject],
      ["dns_names", dnsNames],
      ...(spiffeId === undefined ? [] : [["spiffe_id", spiffeId] as const]),
    ]),
  });
}
