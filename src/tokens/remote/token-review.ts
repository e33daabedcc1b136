import { API_SERVER_HINT } from "../../core/remote-check.ts";
import { RemoteError } from "../../lib/text/error-code.ts";
import { isJsonObject, jsonObjectIn } from "../../lib/text/strict-json.ts";
import { readableParts } from "../verify/token-text.ts";
import type { RemoteClaims, TokenCheckKind } from "./token-check-kinds.ts";

interface TokenReviewSettings {
  readonly apiServer: string;
  /** A token must have one of these audiences; at least one. */
  readonly audiences: readonly string[];
}

const PATH = "/apis/authentication.k8s.io/v1/tokenreviews";

/** Asks the Kubernetes API server about a token (TokenReview). */
export const tokenReview: TokenCheckKind<TokenReviewSettings> = {
  label: "TokenReview",
  opaqueOnly: false,
  ofCluster: true,
  hint: API_SERVER_HINT,
  url: ({ apiServer }) => apiServer,
  open({ apiServer, audiences }, client) {
    const url = `${apiServer.replace(/\/$/, "")}${PATH}`;
    const api = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview" };
    return async (token, signal) => {
      const question = JSON.stringify({ ...api, spec: { token, audiences } });
      const { status, text } = await client.postJson(url, question, signal);
      if (status !== 200 && status !== 201) throw new RemoteError(`status ${status}`);
      return claimsIn(text, token, audiences);
    };
  },
};

/**
 * Returns the caller as claims, or undefined if the token is refused. `aud` is the list of audiences that the API server
 * returns: those that the token has of the requested ones. An API server that does not support audiences returns none;
 * the token is then refused. If the token is a JWT, its expiry and `cnf` are read from the token,
 * which the API server has verified.
 */
function claimsIn(
  text: string,
  token: string,
  audiences: readonly string[],
): RemoteClaims | undefined {
  const status = objectAt(jsonObjectIn(text), "status");
  if (status["authenticated"] !== true) return undefined;
  const aud = textsIn(status["audiences"]);
  if (!audiences.some((each) => aud.includes(each))) return undefined;
  const { username: sub, groups = [] } = objectAt(status, "user");
  const { exp, jti, iat, cnf } = readableParts(token).claims ?? {};
  return {
    sub,
    groups,
    aud,
    ...(typeof exp === "number" ? { exp } : {}),
    ...(typeof iat === "number" ? { iat } : {}),
    ...(typeof jti === "string" ? { jti } : {}),
    ...(cnf === undefined ? {} : { cnf }),
  };
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

function objectAt(
  value: Record<string, unknown> | undefined,
  name: string,
): Record<string, unknown> {
  const inner = value?.[name];
  if (isJsonObject(inner)) return inner;
  throw new RemoteError("the answer is not a TokenReview");
}
