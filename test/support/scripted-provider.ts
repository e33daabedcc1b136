import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { type SigningPair, signingPair, signToken } from "./foreign-keys.ts";
import { listeningPort } from "./listening-port.ts";

type Claims = Readonly<Record<string, unknown>>;

/** What a provider does otherwise than an honest one. */
interface Script {
  /** Claims of the ID token that replace the honest ones; undefined removes one. */
  claims?: Claims | undefined;
  /** Claims of the UserInfo endpoint. */
  userinfo?: Claims | undefined;
  /** Members of the discovery document that replace the honest ones. */
  document?: Claims | undefined;
  /** Replaces the ID token. */
  idToken?: ((honest: Claims) => Promise<string> | string) | undefined;
  /** Answers a path by itself. @returns whether it has. */
  answer?: ((path: string, response: ServerResponse) => boolean) | undefined;
}

/** An OpenID provider that signs everybody in as one person, and lies on demand. */
export interface ScriptedProvider extends AsyncDisposable {
  readonly issuer: string;
  readonly pair: SigningPair;
  readonly script: Script;
  /** The requests to the token endpoint: their forms and `Authorization`. */
  readonly exchanges: readonly {
    readonly form: URLSearchParams;
    readonly authorization?: string;
  }[];
  /** The number of requests. */
  readonly asked: () => number;
  /** Does what a browser does at the provider. @returns the address to which it sends the browser back. */
  consent(location: string): string;
  /** Signs a logout token with these claims beside the honest ones. */
  logoutToken(claims: Claims): Promise<string>;
}

export const CLIENT_ID = "sallyport";

export async function startScriptedProvider(person: Claims): Promise<ScriptedProvider> {
  const pair = signingPair("provider");
  const script: Script = {};
  const codes = new Map<string, { readonly nonce: string; readonly challenge: string }>();
  const exchanges: { form: URLSearchParams; authorization?: string }[] = [];
  let asked = 0;
  let issuer = "";
  const now = (): number => Math.floor(Date.now() / 1_000);
  const honest = (nonce: string): Claims => ({
    iss: issuer,
    aud: CLIENT_ID,
    iat: now(),
    exp: now() + 60,
    nonce,
    ...person,
    ...script.claims,
  });
  async function tokenResponse(request: IncomingMessage): Promise<[number, Claims]> {
    const form = new URLSearchParams(await text(request));
    const { authorization } = request.headers;
    exchanges.push(authorization === undefined ? { form } : { form, authorization });
    const code = form.get("code") ?? "";
    const known = codes.get(code);
    codes.delete(code);
    const proof = createHash("sha256").update(form.get("code_verifier") ?? "");
    if (known === undefined || proof.digest("base64url") !== known.challenge) {
      return [400, { error: "invalid_grant" }];
    }
    const claims = honest(known.nonce);
    const token = await (script.idToken?.(claims) ?? signToken(pair, claims));
    return [200, { access_token: "at", token_type: "Bearer", expires_in: 60, id_token: token }];
  }
  const server = createServer((request, response) => {
    asked += 1;
    const path = request.url ?? "";
    const send = (status: number, body: Claims): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    if (script.answer?.(path, response) === true) return;
    if (path === "/token") void tokenResponse(request).then((answer) => send(...answer));
    else if (path === "/userinfo") send(200, { sub: person["sub"], ...script.userinfo });
    else if (path === "/jwks") send(200, { keys: [pair.jwk] });
    else if (path === "/.well-known/openid-configuration") {
      send(200, {
        issuer,
        jwks_uri: `${issuer}/jwks`,
        token_endpoint: `${issuer}/token`,
        authorization_endpoint: `${issuer}/authorize`,
        userinfo_endpoint: `${issuer}/userinfo`,
        end_session_endpoint: `${issuer}/logout`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        code_challenge_methods_supported: ["S256"],
        id_token_signing_alg_values_supported: ["ES256"],
        authorization_response_iss_parameter_supported: true,
        ...script.document,
      });
    } else send(404, {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  issuer = `http://127.0.0.1:${listeningPort(server)}`;
  return {
    issuer,
    pair,
    script,
    exchanges,
    asked: () => asked,
    consent(location) {
      const { searchParams } = new URL(location);
      const get = (name: string): string => searchParams.get(name) ?? "";
      const code = randomUUID();
      codes.set(code, { nonce: get("nonce"), challenge: get("code_challenge") });
      const back = new URL(get("redirect_uri"));
      back.search = new URLSearchParams({ code, state: get("state"), iss: issuer }).toString();
      return back.href;
    },
    logoutToken: (claims) =>
      signToken(pair, {
        iss: issuer,
        aud: CLIENT_ID,
        iat: now(),
        exp: now() + 120,
        jti: randomUUID(),
        events: { "http://schemas.openid.net/event/backchannel-logout": {} },
        ...claims,
      }),
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
