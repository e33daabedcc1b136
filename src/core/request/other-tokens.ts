import { jsonObjectIn } from "../../lib/text/strict-json.ts";

/** The tokens that somebody here could accept. */
interface Claimed {
  /** Our own issuer, that of assertions, and those in `tokens.trusted`. */
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
/** The beginning of an API key anywhere in a text. */
const KEY_WITHIN = /sp_[0-9a-f]{12}_/;

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
   * cannot be read may be one of ours, misspelt, and so may a text with one of ours in it: libraries join two fields to a list.
   */
  has(token: string): boolean {
    const { allJwts, opaque, maxBytes } = this.#claimed;
    if (token === "" || token.length > maxBytes) return false;
    if (token.startsWith(API_KEY) || KEY_WITHIN.test(token)) return false;
    const parts = token.split(".");
    if (parts.length !== 3) return !opaque && !parts.some((part) => this.#isOurs(part));
    const claims = allJwts ? undefined : jsonObjectIn(decoded(parts[1] ?? ""));
    return claims !== undefined && this.#isOfOthers(claims);
  }

  /** Whether a part of a text may be the claims of one of our tokens. To read JSON that is none is slow. */
  #isOurs(part: string): boolean {
    const text = decoded(part);
    const claims = text.includes('"iss"') ? jsonObjectIn(text) : undefined;
    return claims !== undefined && !this.#isOfOthers(claims);
  }

  #isOfOthers({ iss }: Readonly<Record<string, unknown>>): boolean {
    return iss === undefined || (typeof iss === "string" && !this.#issuers.has(iss));
  }
}

function decoded(part: string): string {
  return Buffer.from(part, "base64url").toString();
}
