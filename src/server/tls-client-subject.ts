import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/**
 * The subject of the certificate that the client of a connection has proved to hold, in the form of RFC 4514 (`CN=alice,O=Example`:
 * the most specific part first, special characters escaped). Undefined without a valid certificate, and for one whose subject
 * is empty, since it names nobody.
 */
export function clientSubjectOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const subject = socket.getPeerX509Certificate()?.subject;
  // Node writes a part per line, from the general to the specific. A line break or plus sign of a value is escaped
  // (CVE-2021-44533), so these are separators.
  return subject?.split("\n").toReversed().join(",").replaceAll(" + ", "+") || undefined;
}
