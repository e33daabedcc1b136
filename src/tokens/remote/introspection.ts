import { RemoteClient } from "../../lib/http/remote-client.ts";
import { RemoteError } from "../../lib/text/remote-error.ts";
import { isJsonObject, parseStrictJson } from "../../lib/text/strict-json.ts";
import { AT_ONCE } from "./question-bounds.ts";
import type { RemoteClaims, RemoteTokenCheck, TokenCheckKind } from "./token-check-kind.ts";

interface IntrospectionSettings {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly caFile?: string;
}

const LARGEST_ANSWER = 65_536;

/** Token introspection (RFC 7662). */
export const introspection: TokenCheckKind<IntrospectionSettings> = {
  label: "introspection",
  opaqueOnly: true,
  ofCluster: false,
  hint: "do clientId and clientSecret belong to a client that may introspect tokens?",
  open: (settings) => new Introspection(settings),
  url: ({ url }) => url,
};

class Introspection implements RemoteTokenCheck {
  readonly #url: string;
  readonly #authorization: string;
  readonly #client: RemoteClient;

  constructor({ url, clientId, clientSecret, caFile }: IntrospectionSettings) {
    this.#url = url;
    // Both are form-encoded first (RFC 6749 §2.3.1).
    const pair = [clientId, clientSecret].map(formEncoded).join(":");
    this.#authorization = `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
    this.#client = new RemoteClient({ caFile, connections: AT_ONCE, maxBytes: LARGEST_ANSWER });
  }

  async ask(token: string, signal: AbortSignal): Promise<RemoteClaims | undefined> {
    const { status, text } = await this.#client.ask(
      {
        method: "POST",
        url: this.#url,
        headers: {
          ...{ accept: "application/json", authorization: this.#authorization },
          "content-type": "application/x-www-form-urlencoded",
        },
        body: new URLSearchParams({ token, token_type_hint: "access_token" }).toString(),
      },
      signal,
    );
    if (status !== 200) throw new RemoteError(`status ${status}`);
    return claimsIn(text);
  }

  close(): void {
    this.#client.close();
  }
}

function formEncoded(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

/**
 * Returns the claims of an active bearer token, else undefined. Refuses tokens bound to a key (RFC 8705, RFC 9449),
 * since nothing here checks the key.
 */
function claimsIn(text: string): RemoteClaims | undefined {
  const answer = objectIn(text);
  const { active, token_type: type, cnf } = answer;
  if (typeof active !== "boolean")
    throw new RemoteError("the answer is not an introspection response");
  const bearer = type === undefined || (typeof type === "string" && /^bearer$/i.test(type));
  return active && bearer && cnf === undefined ? answer : undefined;
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value = parseStrictJson(text);
    if (isJsonObject(value)) return value;
  } catch {
    // The message of JSON.parse quotes the text.
  }
  throw new RemoteError("the answer is not an introspection response");
}
