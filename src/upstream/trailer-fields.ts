/**
 * Fields that say how a message is routed, authorised, kept or read. Whoever merges trailers into the header section would
 * let them change that afterwards (RFC 9110 §6.5.1).
 */
const NEVER_TRAILING =
  /^(?:age|authorization|authentication-info|cache-control|content-.*|cookie|date|expect|expires|host|if-.*|location|max-forwards|pragma|proxy-.*|range|retry-after|set-cookie|te|trailer|transfer-encoding|vary|warning|www-authenticate)$/i;

/** Whether a field may stand behind the body. */
export function mayTrail(name: string): boolean {
  return !NEVER_TRAILING.test(name);
}
