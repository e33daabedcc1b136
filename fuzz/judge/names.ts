/**
 * Names whose meaning is settled before a request goes on. In lower case, as CGI and what follows it read
 * them: every character that is no letter or digit is one.
 */

/** Who is asking: those of all presets. */
export const IDENTITY_NAMES: ReadonlySet<string> = new Set([
  ...["x-auth-subject", "x-auth-groups", "x-auth-issuer"],
  ...["x-forwarded-user", "x-forwarded-groups", "x-remote-user", "x-remote-groups"],
  "x-auth-client-subject",
]);

/** Families in which proxies tell who is asking, and what was asked for before they changed it. */
const FAMILIES = /^x-(?:auth-request|remote|forwarded|original|rewrite)(?:-|$)/;

/** Where it came from. */
export const ORIGIN_NAMES: ReadonlySet<string> = new Set([
  ...["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"],
  ...["x-real-ip", "forwarded"],
]);

/** For the next hop alone (RFC 9110 §7.6.1), or written anew. */
const HOP_NAMES: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"],
  ...["proxy-authentication-info", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["http2-settings", "host", "content-length", "expect", "x-request-id", "authorization"],
]);

export function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");
}

/** Names of another method than the one that was authorized. */
export const METHOD_OVERRIDES: ReadonlySet<string> = new Set([
  ...["x-http-method-override", "x-method-override", "x-http-method"],
]);

/** Whether a header of a client's must not reach the backend as it was sent. */
export function endsHere(name: string): boolean {
  const one = folded(name);
  return (
    HOP_NAMES.has(one) ||
    ORIGIN_NAMES.has(one) ||
    IDENTITY_NAMES.has(one) ||
    METHOD_OVERRIDES.has(one) ||
    FAMILIES.test(one)
  );
}
