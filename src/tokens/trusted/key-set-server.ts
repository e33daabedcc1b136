import { isIP } from "node:net";
import { rereadFile } from "../../lib/files/watched-file.ts";
import { isSafeRemoteUrl, type RemoteAnswer } from "../../lib/http/remote-request.ts";
import { RemoteClient } from "../../lib/http/remote-client.ts";
import { RemoteError } from "../../lib/text/error-code.ts";
import type { KeySetAddress } from "./trusted-keys.ts";
import { isJsonObject, jsonObjectIn } from "../../lib/text/strict-json.ts";

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
  if (document["issuer"] !== issuer) {
    const slash = otherSlash(document["issuer"], issuer);
    throw new RemoteError(`the discovery document names another issuer${slash}`);
  }
  const { jwks_uri: url } = document;
  const wrong = namedAddressProblem(url, issuer);
  if (wrong !== undefined) {
    const hint = wrong === BARE ? ": set jwks.url" : "";
    throw new RemoteError(`the jwks_uri in the discovery document ${wrong}${hint}`);
  }
  return String(url);
}

/** Returns which issuer a document names, if it differs from ours only by a slash at its end; else empty. */
export function otherSlash(named: unknown, issuer: string): string {
  const other = issuer.endsWith("/") ? issuer.slice(0, -1) : `${issuer}/`;
  return named === other ? `: ${other}, not ${issuer}` : "";
}

/** Returns the issuer in the document that an error of `openid-client` is about, at the end of its causes. */
export function issuerNamedIn(error: unknown): unknown {
  if (error instanceof Error) return issuerNamedIn(error.cause);
  const document = isJsonObject(error) ? error["body"] : undefined;
  return isJsonObject(document) ? document["issuer"] : undefined;
}

const NOT_HTTPS = "is not an https URL";
const BARE = "has an IP address as its host";

/** Returns what is wrong with an address that the discovery document of an issuer names; undefined if it may be asked. */
export function namedAddressProblem(url: unknown, issuer: string): string | undefined {
  if (typeof url !== "string" || !isSafeRemoteUrl(url)) return NOT_HTTPS;
  const { hostname, protocol } = new URL(url);
  const own = new URL(issuer);
  if (protocol === "http:" && own.protocol !== "http:") return NOT_HTTPS;
  const bare = isIP(hostname.replaceAll(/[[\]]/g, "")) !== 0 || LOCAL_NAME.test(hostname);
  return bare && hostname !== own.hostname ? BARE : undefined;
}

/**
 * Maximum size of a key set in bytes. Providers publish two to ten keys; 100 with certificates fit. Refusing hostile
 * JSON of this size takes 40 ms.
 */
const LARGEST_BODY = 131_072;
/** How long a discovered address is used before discovery is repeated, in milliseconds. */
const DISCOVERED_MS = 3_600_000;

/** The server of a key set, at a configured address or found by discovery. Refuses redirects. */
export class KeySetServer {
  readonly #issuer: string;
  readonly #address: KeySetAddress;
  readonly #client: RemoteClient;
  readonly #token: ReturnType<typeof rereadFile> | undefined;
  #discovered: { readonly url: string; readonly until: number } | undefined;

  constructor(issuer: string, address: KeySetAddress) {
    this.#issuer = issuer;
    this.#address = address;
    const { caFile, tokenFile } = address;
    this.#client = new RemoteClient({ caFile, connections: 1, maxBytes: LARGEST_BODY });
    this.#token = tokenFile === undefined ? undefined : rereadFile(tokenFile);
  }

  /**
   * Fetches the key set.
   *
   * @returns it with the `Date` of the response, and the lifetime that the server states, in milliseconds, if it states one.
   * @throws the system's error, or an `Error` that says what is wrong with the response.
   */
  async fetch(signal: AbortSignal) {
    const { url = await this.#discover(signal) } = this.#address;
    try {
      const { text, headers } = await this.#get(url, signal);
      return { text, lifeMs: lifeIn(headers["cache-control"]), date: headers.date };
    } catch (error) {
      // The key set may have moved.
      if (this.#discovered !== undefined) this.#discovered = { ...this.#discovered, until: 0 };
      throw error;
    }
  }

  close(): void {
    this.#client.close();
  }

  async #discover(signal: AbortSignal): Promise<string> {
    const known = this.#discovered;
    if (known !== undefined && performance.now() < known.until) return known.url;
    try {
      const { text } = await this.#get(discoveryUrl(this.#issuer), signal);
      const url = keySetUrlIn(text, this.#issuer);
      this.#discovered = { url, until: performance.now() + DISCOVERED_MS };
      return url;
    } catch (error) {
      // While discovery is unreachable, the old address may still work. But if the new document is invalid, the keys
      // must not be used.
      if (known === undefined || error instanceof RemoteError) throw error;
      return known.url;
    }
  }

  async #get(url: string, signal: AbortSignal): Promise<RemoteAnswer> {
    const accept = "application/jwk-set+json, application/json";
    // The token is only for the configured server, never for another one that the discovery document names.
    const isOwn = new URL(url).origin === new URL(this.#address.url ?? this.#issuer).origin;
    const token = isOwn ? await this.#token?.() : undefined;
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token.trim()}` };
    const headers = { accept, ...authorization };
    const answer = await this.#client.ask({ method: "GET", url, headers }, signal);
    if (answer.status !== 200) throw new RemoteError(`status ${answer.status}`);
    return answer;
  }
}

/** Returns the freshness lifetime (RFC 9111 §5.2.2) in milliseconds; undefined if none is stated. */
export function lifeIn(cacheControl: string | undefined): number | undefined {
  if (cacheControl === undefined) return undefined;
  if (/(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])/i.test(cacheControl)) return 0;
  const [, seconds] = /(?:^|[\s,])max-age\s*=\s*"?(\d{1,10})/i.exec(cacheControl) ?? [];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
