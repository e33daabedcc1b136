/**
 * Tokens among the protocols that a WebSocket offers (`Sec-WebSocket-Protocol`, RFC 6455 §11.3.4), since browsers let scripts
 * set no other field: `base64url.bearer.authorization.k8s.io.` and the token in base64url, as Kubernetes reads it, or
 * `bearer` and the token as the next protocol.
 */

const KUBERNETES = "base64url.bearer.authorization.k8s.io.";
export const BEARER_PROTOCOL = "bearer";

export interface OfferedProtocols {
  /** The tokens; empty for one that is missing or not in the one canonical encoding. */
  readonly tokens: readonly string[];
  /** The other protocols, in their order. */
  readonly others: readonly string[];
  /** Whether `bearer` was offered, which can be answered. */
  readonly bearer: boolean;
}

/** @param list all fields, joined by commas. */
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

/** Empty for what is not base64url without padding, in its one spelling. */
function decoded(text: string): string {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes.toString("latin1") : "";
}
