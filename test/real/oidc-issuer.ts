/** A real identity provider: `oidc-provider`, which issues access tokens to one program by client credentials. */
import { generateKeyPairSync, type webcrypto } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type Configuration, Provider } from "oidc-provider";
import { listeningPort } from "../support/listening-port.ts";

const CLIENT = { id: "robot", secret: "robots-secret" };
/** An audience whose tokens are JWTs. Those of all others are opaque. */
export const ORDERS = "https://orders.example.com";

type Key = webcrypto.JsonWebKey & {
  readonly kid: string;
  readonly alg: "ES256";
  readonly use: "sig";
};

export function newKey(kid: string): Key {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { ...privateKey.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" };
}

/** Creates a provider with these keys; the first one signs. */
function providerWith(issuer: string, keys: readonly Key[]): RequestListener {
  const configuration: Configuration = {
    jwks: { keys: keys.map((key) => ({ ...key, kty: "EC" })) },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    clientDefaults: { id_token_signed_response_alg: "ES256" },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, audience) => ({
          scope: "read",
          audience,
          accessTokenTTL: 600,
          accessTokenFormat: audience === ORDERS ? "jwt" : "opaque",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  };
  const answer = new Provider(issuer, configuration).callback();
  return (request, response) => void answer(request, response);
}

export interface OidcIssuer extends AsyncDisposable {
  readonly issuer: string;
  readonly client: { readonly id: string; readonly secret: string };
  /** Replaces its keys; the first one signs from now on. */
  rotate(...keys: readonly Key[]): void;
  tokenFor(resource: string): Promise<string>;
  post(path: string, form: Record<string, string>): Promise<Response>;
  /** Ends all connections, and accepts none until it is started. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export async function startIssuer(...keys: readonly Key[]): Promise<OidcIssuer> {
  let answer: RequestListener;
  const server = createServer((request, response) => answer(request, response));
  const listenAt = async (port: number): Promise<void> => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  await listenAt(0);
  const port = listeningPort(server);
  const issuer = `http://127.0.0.1:${port}`;
  const rotate = (...next: readonly Key[]): void => void (answer = providerWith(issuer, next));
  rotate(...keys);
  const stop = async (): Promise<void> => {
    if (!server.listening) return;
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  };
  const post: OidcIssuer["post"] = (path, form) => {
    const pair = Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString("base64");
    return fetch(`${issuer}${path}`, {
      method: "POST",
      headers: { authorization: `Basic ${pair}` },
      body: new URLSearchParams(form),
    });
  };
  return {
    issuer,
    client: CLIENT,
    rotate,
    post,
    stop,
    start: () => listenAt(port),
    async tokenFor(resource) {
      const grant = { grant_type: "client_credentials", resource, scope: "read" };
      const body = (await (await post("/token", grant)).json()) as { access_token?: string };
      if (body.access_token === undefined) throw new Error(JSON.stringify(body));
      return body.access_token;
    },
    [Symbol.asyncDispose]: stop,
  };
}
