/**
 * Names that the proxy handles itself. In lower case, and folded the way CGI and its successors do: all characters except
 * letters and digits are the same.
 */

/** Names that identify the caller: those of all presets. */
export const IDENTITY_NAMES: ReadonlySet<string> = new Set([
  ...["x-auth-subject", "x-auth-groups", "x-auth-issuer"],
  ...["x-forwarded-user", "x-forwarded-groups", "x-remote-user", "x-remote-groups"],
  "x-auth-client-subject",
]);

/** Families of names in which proxies report the caller and the original request. */
const FAMILIES = /^x-(?:auth-request|remote|forwarded|original|rewrite)(?:-|$)/;

/** Names that report the origin of a request. */
export const ORIGIN_NAMES: ReadonlySet<string> = new Set([
  ...["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-port"],
  ...["x-real-ip", "forwarded"],
]);

/** Only for the next hop (RFC 9110 §7.6.1), or replaced by the proxy. */
const HOP_NAMES: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"],
  ...["proxy-authentication-info", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["http2-settings", "host", "content-length", "expect", "x-request-id", "authorization"],
]);

export function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");
}

/** Names that override the method that was authorized. */
export const METHOD_OVERRIDES: ReadonlySet<string> = new Set([
  ...["x-http-method-override", "x-method-override", "x-http-method"],
]);

/** Whether a client's header must not reach the backend unchanged. */
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
