import { isIP } from "node:net";
import { isSafeRemoteUrl } from "../../lib/http/safe-remote-url.ts";
import { RemoteError } from "../../lib/text/remote-error.ts";
import { jsonObjectIn } from "../../lib/text/strict-json.ts";

/** The names of this machine (RFC 6761 §6.3), with or without the final dot of a fully qualified name. */
const LOCAL_NAME = /(?:^|\.)localhost\.?$/;

/** OpenID Connect Discovery 1.0 §4: a slash at the end of the issuer is removed before the path is added. */
export function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
}

/**
 * Returns the address of the key set in a discovery document.
 *
 * The document must name exactly this issuer (§4.3). Its `jwks_uri` may name another host, as Google's does, but only
 * over https. It may name this machine or an IP address only if the issuer has the same host; otherwise an issuer could
 * make us send requests to servers that only we can reach (SSRF).
 *
 * @throws RemoteError that says what is wrong, without quoting the document.
 */
export function keySetUrlIn(text: string, issuer: string): string {
  const document = jsonObjectIn(text);
  if (document === undefined) throw new RemoteError("the discovery document is not a JSON object");
  if (document["issuer"] !== issuer)
    throw new RemoteError("the discovery document names another issuer");
  const { jwks_uri: url } = document;
  if (typeof url !== "string" || !isSafeRemoteUrl(url)) {
    throw new RemoteError("the jwks_uri in the discovery document is not an https URL");
  }
  const { hostname, protocol } = new URL(url);
  const own = new URL(issuer);
  if (protocol === "http:" && own.protocol !== "http:") {
    throw new RemoteError("the jwks_uri in the discovery document is not an https URL");
  }
  const bare = isIP(hostname.replaceAll(/[[\]]/g, "")) !== 0 || LOCAL_NAME.test(hostname);
  if (bare && hostname !== own.hostname) {
    throw new RemoteError(
      "the jwks_uri in the discovery document has an IP address as its host: set jwks.url",
    );
  }
  return url;
}
