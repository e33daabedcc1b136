import { isIP } from "node:net";
import { isLoopback, isSafeRemoteUrl } from "../../lib/http/safe-remote-url.ts";
import { RemoteError } from "../../lib/http/remote-client.ts";
import { isJsonObject, parseStrictJson } from "../../lib/text/strict-json.ts";

/** OpenID Connect Discovery 1.0 §4: a slash at the end of the issuer is removed before the path is added. */
export function discoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
}

/**
 * The address of the key set in a discovery document.
 *
 * The document must be of exactly this issuer (§4.3). Its `jwks_uri` may name another host, as that of Google does, but
 * by https, and not this machine or a bare address unless the issuer is there as well: otherwise an issuer could have us
 * ask servers that only we can reach.
 *
 * @throws RemoteError that says what is wrong, and quotes nothing.
 */
export function keySetUrlIn(text: string, issuer: string): string {
  const document = objectIn(text);
  if (document["issuer"] !== issuer) throw new RemoteError("the discovery is of another issuer");
  const { jwks_uri: url } = document;
  if (typeof url !== "string" || !isSafeRemoteUrl(url)) {
    throw new RemoteError("the jwks_uri of the discovery is no https URL");
  }
  const { hostname, protocol } = new URL(url);
  const own = new URL(issuer);
  if (protocol === "http:" && own.protocol !== "http:") {
    throw new RemoteError("the jwks_uri of the discovery is no https URL");
  }
  const bare = isIP(hostname.replaceAll(/[[\]]/g, "")) !== 0 || isLoopback(hostname);
  if (bare && hostname !== own.hostname) {
    throw new RemoteError(
      "the jwks_uri of the discovery names an address instead of a host: set jwks.url",
    );
  }
  return url;
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value = parseStrictJson(text);
    if (isJsonObject(value)) return value;
  } catch {
    // The message of JSON.parse quotes the text.
  }
  throw new RemoteError("the discovery is no JSON object");
}
