import type { Identity } from "../core/identity.ts";

/** The header names under which the backend learns who is calling; undefined where it is not told. */
export interface IdentityHeaderNames {
  readonly subject: string;
  readonly groups?: string | undefined;
  readonly issuer?: string | undefined;
}

export const IDENTITY_PRESETS = {
  sallyport: { subject: "X-Auth-Subject", groups: "X-Auth-Groups", issuer: "X-Auth-Issuer" },
  "oauth2-proxy": { subject: "X-Forwarded-User", groups: "X-Forwarded-Groups" },
  "kube-rbac-proxy": { subject: "X-Remote-User", groups: "X-Remote-Groups" },
} as const satisfies Record<string, IdentityHeaderNames>;

/** Tells the backend the subject of the client's certificate, whatever the names of the other headers are. */
export const CLIENT_SUBJECT_HEADER = "X-Auth-Client-Subject";

/** Printable ASCII without `%`, which marks our encoding. */
const VERBATIM = /^[\x20-\x24\x26-\x7e]*$/;

/** A claim as a field value: what is not printable ASCII goes percent-encoded as UTF-8 (the way of RFC 8187 §3.2.1). */
export function fieldValue(claim: string): string {
  if (VERBATIM.test(claim)) return claim.trim() === claim ? claim : encodeURIComponent(claim);
  return encodeURIComponent(claim.toWellFormed());
}

/** Groups are a comma-separated list, so a comma inside a name is encoded. */
function listValue(names: readonly string[]): string {
  return names
    .map((name) =>
      name.includes(",") ? encodeURIComponent(name.toWellFormed()) : fieldValue(name),
    )
    .join(",");
}

/** Made once for each caller: the identity of a token that is remembered comes back with every request. */
export class IdentityHeaders {
  readonly #names: IdentityHeaderNames;
  readonly #made = new WeakMap<Identity, readonly string[]>();

  constructor(names: IdentityHeaderNames) {
    this.#names = names;
  }

  /** @returns name and value alternating; nothing for a request without identity. */
  for(identity: Identity | undefined): readonly string[] {
    if (identity === undefined) return [];
    const before = this.#made.get(identity);
    if (before !== undefined) return before;
    const headers = identityHeaders(this.#names, identity);
    this.#made.set(identity, headers);
    return headers;
  }
}

function identityHeaders(names: IdentityHeaderNames, identity: Identity): readonly string[] {
  const headers = [names.subject, fieldValue(identity.subject)];
  if (names.groups !== undefined) headers.push(names.groups, listValue(identity.groups));
  if (names.issuer !== undefined) headers.push(names.issuer, fieldValue(identity.issuer));
  return headers;
}
