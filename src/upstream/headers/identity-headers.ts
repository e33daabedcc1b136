import type { Configuration } from "../../config/configuration.ts";
import type { ClaimValue, Identity } from "../../core/request/identity.ts";
import type { ClientCertificate } from "../../server/tls/client-certificate.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Assertions } from "../../tokens/assertion/assertions.ts";
import { fieldPairs } from "../../lib/http/header-values.ts";

type Written = Configuration["identity"];

/** The headers that carry the identity to the backend, without those that are not sent. */
export type IdentityHeaderNames = Exclude<Written["headers"], string> &
  Partial<Pick<Written, "claims">>;

export const IDENTITY_PRESETS = {
  sallyport: { subject: "X-Auth-Subject", groups: "X-Auth-Groups", issuer: "X-Auth-Issuer" },
  "oauth2-proxy": { subject: "X-Forwarded-User", groups: "X-Forwarded-Groups" },
  "kube-rbac-proxy": { subject: "X-Remote-User", groups: "X-Remote-Groups" },
} as const satisfies Record<string, IdentityHeaderNames>;

const SUBJECT = "X-Auth-Client-Subject";
const SPIFFE_ID = "X-Auth-Client-Spiffe-Id";
/** The names are separated by commas. */
const DNS_NAMES = "X-Auth-Client-Dns-Names";
/** The headers about the client's certificate, whatever the other header names are. */
export const CLIENT_HEADERS = [SUBJECT, SPIFFE_ID, DNS_NAMES];

/** The most DNS names that a header carries. Of a certificate with more, it is left out: half of them would be another certificate's. */
const MOST_DNS_NAMES = 32;

const certificateHeaders = new WeakMap<ClientCertificate, readonly string[]>();

/** Returns the headers about the client's certificate: names and values, alternating. Those without a value are left out. */
export function headersOfCertificate(certificate: ClientCertificate): readonly string[] {
  let headers = certificateHeaders.get(certificate);
  if (headers === undefined) {
    const { subject, spiffeId, dnsNames } = certificate;
    const names = dnsNames.length > MOST_DNS_NAMES ? "" : listValue(dnsNames);
    const fields = [
      [SUBJECT, fieldValue(subject)],
      [SPIFFE_ID, spiffeId],
      [DNS_NAMES, names],
    ] as const;
    headers = fields.flatMap(([name, value]) => (value ? [name, value] : []));
    certificateHeaders.set(certificate, headers);
  }
  return headers;
}

/** What is encoded: all but printable ASCII, `%`, which marks our encoding, and spaces at the ends, which recipients remove. */
const ENCODED = /[^\x20-\x24\x26-\x7e]+|^ | $/g;
/** The same with the comma, which separates the values of a list. */
const ENCODED_IN_LIST = /[^\x20-\x24\x26-\x2b\x2d-\x7e]+|^ | $/g;

/** Encodes a text that is never a list as a field value: character by character, as UTF-8 (as in RFC 8187 §3.2.1). */
export function fieldValue(text: string): string {
  return text.toWellFormed().replace(ENCODED, encodeURIComponent);
}

/** Encodes values, separated by commas. */
function listValue(values: readonly string[]): string {
  return values
    .map((value) => value.toWellFormed().replace(ENCODED_IN_LIST, encodeURIComponent))
    .join(",");
}

/** Creates the identity headers: names and values, alternating. */
export function identityHeaders(names: IdentityHeaderNames, identity: Identity): readonly string[] {
  const headers = [names.subject, fieldValue(identity.subject)];
  if (names.groups !== undefined) headers.push(names.groups, listValue(identity.groups));
  if (names.issuer !== undefined) headers.push(names.issuer, fieldValue(identity.issuer));
  for (const [header, claim] of Object.entries(names.claims ?? {})) {
    const value = identity.claims?.get(claim);
    if (value !== undefined) headers.push(header, claimValue(value));
  }
  return headers;
}

/** Encodes a claim that may be a list. A text with a comma is none, so it must not look like one. */
export function claimValue(value: ClaimValue): string {
  return listValue(typeof value === "object" ? value.map(String) : [String(value)]);
}

/**
 * Returns the identity headers of permitted requests for another proxy, which overwrites those of its client with them: the names
 * of all, and each of them, empty without a value. Those about a certificate are not among them: what another proxy has shown of
 * itself says nothing of its client, and a question that has one is refused.
 *
 * @param assertions what signs assertions, if they are configured.
 */
export function identityAnswers(
  names: IdentityHeaderNames,
  assertions?: Pick<Assertions, "header" | "for">,
): {
  readonly identityNames: readonly string[];
  readonly identityOf: (permit: Permit) => readonly string[];
} {
  const { subject, groups, issuer, claims = {} } = names;
  const all = [subject, groups, issuer, ...Object.keys(claims), assertions?.header];
  const every = all.filter((name) => name !== undefined);
  const nobody = every.flatMap((name) => [name, ""]);
  /** All requests with a cached token share one identity. */
  const answers = new WeakMap<Identity, readonly string[]>();
  const answerFor = (identity: Identity): readonly string[] => {
    const known = new Map(fieldPairs(identityHeaders(names, identity)));
    return every.flatMap((name) => [name, known.get(name) ?? ""]);
  };
  const identityOf = ({ identity, route }: Permit): readonly string[] => {
    if (identity === undefined) return nobody;
    let known = answers.get(identity);
    if (known === undefined) answers.set(identity, (known = answerFor(identity)));
    if (route.assertion !== true || assertions === undefined) return known;
    const assertion = assertions.for(identity);
    return known.map((text, at) =>
      at % 2 === 1 && known[at - 1] === assertions.header ? assertion : text,
    );
  };
  return { identityNames: every, identityOf };
}
