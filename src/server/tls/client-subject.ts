import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/**
 * Returns the subject of a client's verified certificate in the form of RFC 4514 (`CN=alice,O=Example`: most specific
 * part first, special characters escaped). Undefined without a valid certificate, or if the subject is empty.
 */
export function clientSubjectOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const subject = socket.getPeerX509Certificate()?.subject;
  // Node writes one part per line, from general to specific. Line breaks and plus signs inside values are escaped
  // (CVE-2021-44533), so unescaped ones are separators.
  return subject?.split("\n").toReversed().join(",").replaceAll(" + ", "+") || undefined;
}
