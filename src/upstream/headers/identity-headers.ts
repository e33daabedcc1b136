import type { ClaimValue, Identity } from "../../core/request/identity.ts";

/** The headers that carry the identity to the backend; undefined for those that are not sent. */
export interface IdentityHeaderNames {
  readonly subject: string;
  readonly groups?: string | undefined;
  readonly issuer?: string | undefined;
  /** More headers, each with the claim that it carries. */
  readonly claims?: Readonly<Record<string, string>> | undefined;
}

export const IDENTITY_PRESETS = {
  sallyport: { subject: "X-Auth-Subject", groups: "X-Auth-Groups", issuer: "X-Auth-Issuer" },
  "oauth2-proxy": { subject: "X-Forwarded-User", groups: "X-Forwarded-Groups" },
  "kube-rbac-proxy": { subject: "X-Remote-User", groups: "X-Remote-Groups" },
} as const satisfies Record<string, IdentityHeaderNames>;

/** Carries the subject of the client's certificate, whatever the other header names are. */
export const CLIENT_SUBJECT_HEADER = "X-Auth-Client-Subject";

/** Printable ASCII except `%`, which marks our encoding. */
const VERBATIM = /^[\x20-\x24\x26-\x7e]*$/;

/**
 * Encodes a claim as a field value: anything but printable ASCII is percent-encoded as UTF-8 (as in RFC 8187 §3.2.1).
 */
export function fieldValue(claim: string): string {
  if (VERBATIM.test(claim)) return claim.trim() === claim ? claim : encodeURIComponent(claim);
  return encodeURIComponent(claim.toWellFormed());
}

/** Joins groups with commas; a comma inside a name is encoded. */
function listValue(names: readonly string[]): string {
  return names
    .map((name) =>
      name.includes(",") ? encodeURIComponent(name.toWellFormed()) : fieldValue(name),
    )
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

/** Encodes one value, or a list separated by commas. */
export function claimValue(value: ClaimValue): string {
  return typeof value === "object" ? listValue(value.map(String)) : fieldValue(String(value));
}
