/**
 * Tokens among the protocols that a client offers for a WebSocket (`Sec-WebSocket-Protocol`, RFC 6455 §11.3.4):
 * browsers let scripts set no other field. A token is either appended in base64url to
 * `base64url.bearer.authorization.k8s.io.`, as in Kubernetes, or is the protocol after `bearer`.
 */

const KUBERNETES = "base64url.bearer.authorization.k8s.io.";
export const BEARER_PROTOCOL = "bearer";

export interface OfferedProtocols {
  /** The tokens; empty for a token that is missing or not in canonical base64url. */
  readonly tokens: readonly string[];
  /** The other protocols, in their order. */
  readonly others: readonly string[];
  /** Whether `bearer` was offered, so that the response may select it. */
  readonly bearer: boolean;
}

/** Parses the offered protocols. @param list the values of all fields, joined by commas. */
export function offeredProtocols(list: string): OfferedProtocols {
  const tokens: string[] = [];
  const others: string[] = [];
  let bearer = false;
  const offered = list.split(",").map((each) => each.trim());
  for (let at = 0; at < offered.length; at += 1) {
    const protocol = offered[at] ?? "";
    if (protocol === BEARER_PROTOCOL) {
      bearer = true;
      at += 1;
      tokens.push(offered[at] ?? "");
    } else if (protocol.startsWith(KUBERNETES)) {
      tokens.push(decoded(protocol.slice(KUBERNETES.length)));
    } else if (protocol !== "") others.push(protocol);
  }
  return { tokens, others, bearer };
}

/** Decodes base64url. Returns an empty text unless the encoding is canonical and without padding. */
function decoded(text: string): string {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes.toString("latin1") : "";
}
