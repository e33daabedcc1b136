import type { StoreHint } from "../../credentials/stores/user-store.ts";

/** What an operator can do if the connection to a user store or a state server fails. */
const CONNECTION_HINTS: readonly StoreHint[] = [
  {
    reason: /^ECONNREFUSED/,
    hint: "is the server running and listening at this address and port?",
  },
  {
    reason: /^(?:ENOTFOUND|EAI_AGAIN)/,
    hint: "check the host in `url`, and the DNS of this machine or pod",
  },
  {
    reason: /^(?:EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)/,
    hint: "does a firewall or NetworkPolicy let this through?",
  },
  { reason: /ALTNAME/, hint: "the certificate does not match the name in `url`" },
  {
    reason: /EXPIRED|NOT_YET_VALID/,
    hint: "renew the server's certificate, or set the clock of this machine",
  },
  { reason: /SELF_SIGNED|VERIFY|ISSUER/, hint: "set `caFile` to the certificate of its authority" },
  {
    reason: /ERR_SSL|^EPROTO|ECONNRESET/,
    hint: "does this port speak TLS, and does the scheme of `url` match?",
  },
  {
    reason: /\btime|timeout|^Connection terminated/i,
    hint: "the server hangs or is slow, or a firewall drops the connection: raise `timeout` if it needs longer",
  },
];

/**
 * Returns what an operator can do about a user store or a state server that is unavailable, in one line.
 *
 * @param own the hints of this kind of server.
 * @param otherwise the hint if none matches.
 */
export function storeHint(reason: string, own: readonly StoreHint[], otherwise: string): string {
  const fits = [...CONNECTION_HINTS, ...own].find((each) => each.reason.test(reason));
  return fits?.hint ?? otherwise;
}
