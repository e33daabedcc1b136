import type { Configuration } from "../../config/configuration.ts";
import {
  API_SERVER_HINT,
  type RemoteCheckObserver,
  type RemoteProbe,
  remoteProbe,
} from "../../core/remote-check.ts";
import { RemoteClient } from "../../lib/http/remote-client.ts";
import { keysOf } from "../../lib/keys-of.ts";
import { confirmationIn } from "../verify/claims.ts";
import { RemoteError } from "../../lib/text/error-code.ts";
import { isJsonObject, jsonObjectIn } from "../../lib/text/strict-json.ts";
import { readableParts } from "../verify/token-text.ts";

type Written = NonNullable<Configuration["tokens"]["trusted"]>[number];

/** The kinds by the key of an issuer in `tokens.trusted`, each with its settings. */
type Settings = {
  readonly [Kind in "introspection" | "tokenReview"]: NonNullable<Written[Kind]>;
};

/** Token introspection (RFC 7662). */
const introspection: TokenCheckKind<Settings["introspection"]> = {
  label: "introspection",
  opaqueOnly: true,
  ofCluster: false,
  hint: "do clientId and clientSecret belong to a client that may introspect tokens?",
  url: ({ url }) => url,
  open({ url, clientId, clientSecret }, client) {
    // Both are form-encoded first (RFC 6749 §2.3.1).
    const pair = [clientId, clientSecret].map(formEncoded).join(":");
    const headers = {
      accept: "application/json",
      authorization: `Basic ${Buffer.from(pair, "utf8").toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
    };
    return async (token, signal) => {
      const body = new URLSearchParams({ token, token_type_hint: "access_token" }).toString();
      const { status, text } = await client.ask({ method: "POST", url, headers, body }, signal);
      if (status !== 200) throw new RemoteError(`status ${status}`);
      return claimsIn(text);
    };
  },
};

function formEncoded(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

/** Returns the claims of an active token of a known type, else undefined. */
function claimsIn(text: string): RemoteClaims | undefined {
  const answer = jsonObjectIn(text);
  const { active, token_type: type } = answer ?? {};
  if (typeof active !== "boolean")
    throw new RemoteError("the answer is not an introspection response");
  const name = typeof type === "string" ? type.toLowerCase() : type;
  const bound = name === "dpop" && confirmationIn(answer?.["cnf"])?.jkt !== undefined;
  return active && (name === undefined || name === "bearer" || bound) ? answer : undefined;
}

const PATH = "/apis/authentication.k8s.io/v1/tokenreviews";

/** Asks the Kubernetes API server about a token (TokenReview). */
const tokenReview: TokenCheckKind<Settings["tokenReview"]> = {
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
      return reviewedClaims(text, token, audiences);
    };
  },
};

/**
 * Returns the caller as claims, or undefined if the token is refused. `aud` is the list of audiences that the API server
 * returns: those that the token has of the requested ones. An API server that does not support audiences returns none;
 * the token is then refused. If the token is a JWT, its expiry and `cnf` are read from the token,
 * which the API server has verified.
 */
function reviewedClaims(
  text: string,
  token: string,
  audiences: readonly string[],
): RemoteClaims | undefined {
  const status = objectAt(jsonObjectIn(text), "status");
  if (status["authenticated"] !== true) return undefined;
  const { audiences: granted } = status;
  const aud = Array.isArray(granted) ? granted.filter((each) => typeof each === "string") : [];
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

function objectAt(
  value: Record<string, unknown> | undefined,
  name: string,
): Record<string, unknown> {
  const inner = value?.[name];
  if (isJsonObject(inner)) return inner;
  throw new RemoteError("the answer is not a TokenReview");
}

const KINDS: { readonly [Kind in keyof Settings]: TokenCheckKind<Settings[Kind]> } = {
  introspection,
  tokenReview,
};

export type TokenCheckName = keyof Settings;

export const TOKEN_CHECKS: readonly TokenCheckName[] = keysOf(KINDS);

/** The settings of an issuer whose tokens another server verifies: those of one kind. */
type TokenCheckSettings = {
  readonly [Kind in TokenCheckName]?: Settings[Kind] | undefined;
};

/** An issuer whose tokens another server verifies. */
export type RemoteIssuer = Exclude<Written, { readonly jwks: unknown }>;

/** Creates the observer for the check of an issuer. */
export type ObserveCheck = (kind: TokenCheckName, issuer: string) => RemoteCheckObserver;

/** Maximum number of concurrent requests to one server, and of connections to it. */
export const AT_ONCE = 16;
const LARGEST_ANSWER = 65_536;

/** Asks a server about a token. */
export interface RemoteTokenCheck {
  /** @returns undefined for a token that is not active. @throws RemoteError, or the system's error. */
  ask(token: string, signal: AbortSignal): Promise<RemoteClaims | undefined>;
  close(): void;
}

/** How another server verifies the tokens of an issuer. */
export type TokenCheck = NonNullable<ReturnType<typeof checkOf>>;

/** Returns how another server verifies the tokens of an issuer; undefined if none does. */
export function tokenCheckOf(issuer: TokenCheckSettings): TokenCheck | undefined {
  for (const kind of TOKEN_CHECKS) {
    const found = checkOf(kind, issuer[kind]);
    if (found !== undefined) return found;
  }
  return undefined;
}

function checkOf<Kind extends TokenCheckName>(kind: Kind, settings: Settings[Kind] | undefined) {
  if (settings === undefined) return undefined;
  const { label, opaqueOnly, ofCluster, hint, ...row } = KINDS[kind];
  const access: Settings[TokenCheckName] = settings;
  const { caFile } = access;
  const tokenFile = "tokenFile" in access ? access.tokenFile : undefined;
  const bounds = { connections: AT_ONCE, maxBytes: LARGEST_ANSWER };
  /** Close it after its last query. */
  const open = (): RemoteTokenCheck => {
    const client = new RemoteClient({ caFile, tokenFile, ...bounds });
    return { ask: row.open(settings, client), close: () => client.close() };
  };
  /** Returns a test query for `sallyport doctor`. @param nothing a text that is no token. */
  const probe = (nothing: string): RemoteProbe =>
    remoteProbe({ url: row.url(settings), hint }, open, nothing);
  return { ...access, kind, label, opaqueOnly, ofCluster, open, probe };
}

/** A kind of server that verifies tokens: one of the keys of an issuer in `tokens.trusted`. */
interface TokenCheckKind<Settings> {
  /** What `explain` calls it. */
  readonly label: string;
  /** Whether the server is asked only about tokens that are not JWTs. */
  readonly opaqueOnly: boolean;
  /** Whether its callers are the users of the Kubernetes cluster, whom a SubjectAccessReview can be about. */
  readonly ofCluster: boolean;
  /** What to look at if the server does not answer, for `sallyport doctor`. */
  readonly hint: string;
  /** Returns the server's URL. */
  url(settings: Settings): string;
  open(settings: Settings, client: RemoteClient): RemoteTokenCheck["ask"];
}

/** The claims of a token as the remote server reports them. */
export type RemoteClaims = Readonly<Record<string, unknown>>;
