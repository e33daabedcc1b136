import { RereadFile } from "../../lib/files/reread-file.ts";
import { type RemoteAnswer, RemoteClient, RemoteError } from "../../lib/http/remote-client.ts";
import { discoveryUrl, keySetUrlIn } from "./discovery.ts";
import type { KeySetAddress } from "./trusted-issuer.ts";

/**
 * Maximum size of a key set in bytes. Providers publish two to ten keys; 100 with certificates fit. Refusing hostile
 * JSON of this size takes 40 ms.
 */
const LARGEST_BODY = 131_072;
/** How long a discovered address is used before it is looked up again, in milliseconds. */
const DISCOVERED_MS = 3_600_000;

export interface FetchedKeySet {
  readonly text: string;
  /** How long its server says that it may be kept, in milliseconds; undefined if it does not say. */
  readonly lifeMs: number | undefined;
  /** The `Date` of the answer. */
  readonly date: string | undefined;
}

/** The server of a key set: at an address, or found by discovery. Redirects are refused. */
export class KeySetServer {
  readonly #issuer: string;
  readonly #address: KeySetAddress;
  readonly #client: RemoteClient;
  readonly #token: RereadFile | undefined;
  #discovered: { readonly url: string; readonly until: number } | undefined;

  constructor(issuer: string, address: KeySetAddress) {
    this.#issuer = issuer;
    this.#address = address;
    const { caFile, tokenFile } = address;
    this.#client = new RemoteClient({ caFile, connections: 1, maxBytes: LARGEST_BODY });
    this.#token = tokenFile === undefined ? undefined : new RereadFile(tokenFile);
  }

  /**
   * Fetches the key set.
   *
   * @param signal aborts the request.
   * @throws the system's error, or an `Error` that says what is wrong with the response.
   */
  async fetch(signal: AbortSignal): Promise<FetchedKeySet> {
    const { url = await this.#discover(signal) } = this.#address;
    try {
      const { text, headers } = await this.#get(url, signal);
      return { text, lifeMs: lifeIn(headers["cache-control"]), date: headers.date };
    } catch (error) {
      // It may have moved.
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
      // The keys may be there all the same, but not when the document is one to be refused.
      if (known === undefined || error instanceof RemoteError) throw error;
      return known.url;
    }
  }

  async #get(url: string, signal: AbortSignal): Promise<RemoteAnswer> {
    const accept = "application/jwk-set+json, application/json";
    const headers = { accept, ...(await this.#authorization(url)) };
    const answer = await this.#client.ask({ method: "GET", url, headers }, signal);
    if (answer.status !== 200) throw new RemoteError(`status ${answer.status}`);
    return answer;
  }

  /** Shows the token to the server that is configured, and to no other that a discovery names. */
  async #authorization(url: string): Promise<Record<string, string>> {
    const configured = new URL(this.#address.url ?? this.#issuer).origin;
    if (this.#token === undefined || new URL(url).origin !== configured) return {};
    return { authorization: `Bearer ${(await this.#token.text()).trim()}` };
  }
}

/** How long an answer may be kept by its `Cache-Control` (RFC 9111 §5.2.2); undefined if it does not say. */
export function lifeIn(cacheControl: string | undefined): number | undefined {
  if (cacheControl === undefined) return undefined;
  if (/(?:^|[\s,])no-(?:store|cache)(?:$|[\s,=])/i.test(cacheControl)) return 0;
  const [, seconds] = /(?:^|[\s,])max-age\s*=\s*"?(\d{1,10})/i.exec(cacheControl) ?? [];
  return seconds === undefined ? undefined : Number(seconds) * 1000;
}
