import { API_SERVER_HINT } from "../../core/remote-check.ts";
import { RereadFile } from "../../lib/files/reread-file.ts";
import { RemoteClient } from "../../lib/http/remote-client.ts";
import { RemoteError } from "../../lib/text/remote-error.ts";
import { isJsonObject, parseStrictJson } from "../../lib/text/strict-json.ts";
import { readableParts } from "../verify/token-text.ts";
import { AT_ONCE } from "./question-bounds.ts";
import type { RemoteClaims, RemoteTokenCheck, TokenCheckKind } from "./token-check-kind.ts";

interface TokenReviewSettings {
  readonly apiServer: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
  /** A token must have one of these audiences. If empty, it must have an audience of the API server. */
  readonly audiences: readonly string[];
}

const PATH = "/apis/authentication.k8s.io/v1/tokenreviews";
const LARGEST_ANSWER = 65_536;

/** Asks the Kubernetes API server about a token (TokenReview). */
export const tokenReview: TokenCheckKind<TokenReviewSettings> = {
  label: "TokenReview",
  opaqueOnly: false,
  ofCluster: true,
  hint: API_SERVER_HINT,
  open: (settings) => new TokenReview(settings),
  url: ({ apiServer }) => apiServer,
};

class TokenReview implements RemoteTokenCheck {
  readonly #settings: TokenReviewSettings;
  readonly #client: RemoteClient;
  readonly #own: RereadFile | undefined;

  constructor(settings: TokenReviewSettings) {
    const { caFile, tokenFile } = settings;
    this.#settings = settings;
    this.#client = new RemoteClient({ caFile, connections: AT_ONCE, maxBytes: LARGEST_ANSWER });
    this.#own = tokenFile === undefined ? undefined : new RereadFile(tokenFile);
  }

  async ask(token: string, signal: AbortSignal): Promise<RemoteClaims | undefined> {
    const { apiServer, audiences } = this.#settings;
    const own = await this.#own?.text();
    const { status, text } = await this.#client.ask(
      {
        method: "POST",
        url: `${apiServer.replace(/\/$/, "")}${PATH}`,
        headers: {
          ...{ accept: "application/json", "content-type": "application/json" },
          ...(own === undefined ? {} : { authorization: `Bearer ${own.trim()}` }),
        },
        body: JSON.stringify({
          ...{ apiVersion: "authentication.k8s.io/v1", kind: "TokenReview" },
          spec: { token, ...(audiences.length === 0 ? {} : { audiences }) },
        }),
      },
      signal,
    );
    if (status !== 200 && status !== 201) throw new RemoteError(`status ${status}`);
    return claimsIn(text, token, audiences);
  }

  close(): void {
    this.#client.close();
  }
}

/**
 * Returns the caller as claims, or undefined if the token is refused. `aud` is the list of audiences that the API server
 * returns: those that the token has of the requested ones. An API server that does not support audiences returns none;
 * the token is then refused if audiences are configured. If the token is a JWT, its expiry is read from the token, which
 * the API server has verified.
 */
function claimsIn(
  text: string,
  token: string,
  audiences: readonly string[],
): RemoteClaims | undefined {
  const status = objectAt(objectIn(text), "status");
  if (status["authenticated"] !== true) return undefined;
  const aud = textsIn(status["audiences"]);
  if (audiences.length > 0 && !audiences.some((each) => aud.includes(each))) return undefined;
  const { username: sub, groups = [] } = objectAt(status, "user");
  const { exp, jti, iat } = readableParts(token).claims ?? {};
  return {
    ...{ sub, groups },
    ...(aud.length > 0 ? { aud } : {}),
    ...(typeof exp === "number" ? { exp } : {}),
    ...(typeof iat === "number" ? { iat } : {}),
    ...(typeof jti === "string" ? { jti } : {}),
  };
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function objectAt(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const inner = value[name];
  if (isJsonObject(inner)) return inner;
  throw new RemoteError("the answer is not a TokenReview");
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value = parseStrictJson(text);
    if (isJsonObject(value)) return value;
  } catch {
    // The message of JSON.parse quotes the text.
  }
  throw new RemoteError("the answer is not a TokenReview");
}
