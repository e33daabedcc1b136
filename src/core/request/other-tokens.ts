import { jsonObjectIn } from "../../lib/text/strict-json.ts";

/** The tokens that somebody here could accept. */
interface Claimed {
  /** Our own issuer, and those in `tokens.trusted`. */
  readonly issuers: readonly string[];
  /** Whether a server is asked about JWTs of every other issuer. */
  readonly allJwts: boolean;
  /** Whether a server is asked about tokens that are no JWTs. */
  readonly opaque: boolean;
  /** Maximum length of a token. */
  readonly maxBytes: number;
}

/** How API keys begin. */
const API_KEY = "sp_";

/** Tells tokens of issuers that nobody here knows, such as an application's own. */
export class OtherTokens {
  readonly #claimed: Claimed;
  readonly #issuers: ReadonlySet<string>;

  constructor(claimed: Claimed) {
    this.#claimed = claimed;
    this.#issuers = new Set(claimed.issuers);
  }

  /**
   * Whether a token is certainly none that could be accepted here. Nothing in it is verified, so that says nothing more. A JWT that
   * cannot be read may be one of ours, misspelt.
   */
  has(token: string): boolean {
    const { allJwts, opaque, maxBytes } = this.#claimed;
    if (token === "" || token.length > maxBytes || token.startsWith(API_KEY)) return false;
    const parts = token.split(".", 4);
    if (parts.length !== 3) return !opaque;
    const payload = Buffer.from(parts[1] ?? "", "base64url").toString();
    const claims = allJwts ? undefined : jsonObjectIn(payload);
    if (claims === undefined) return false;
    const { iss } = claims;
    return iss === undefined || (typeof iss === "string" && !this.#issuers.has(iss));
  }
}
