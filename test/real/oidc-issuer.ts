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
  readonly alg: "ES256" | "RS256";
  readonly use: "sig";
};

export function newKey(kid: string, alg: Key["alg"] = "ES256"): Key {
  const { privateKey } =
    alg === "ES256"
      ? generateKeyPairSync("ec", { namedCurve: "P-256" })
      : generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

/** What the JWTs of a provider say. */
interface Saying {
  readonly audience?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** Creates a provider with these keys; the first one signs. */
function providerWith(
  issuer: string,
  keys: readonly Key[],
  { audience: said, claims = {} }: Saying,
): RequestListener {
  const alg = keys[0]?.alg ?? "ES256";
  const configuration: Configuration = {
    jwks: { keys: keys.map((key) => ({ ...key, kty: alg === "ES256" ? "EC" : "RSA" })) },
    extraTokenClaims: () => claims,
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
      },
    ],
    clientDefaults: { id_token_signed_response_alg: alg },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, audience) => ({
          scope: "read orders:write",
          audience: said ?? audience,
          accessTokenTTL: 600,
          accessTokenFormat: audience === ORDERS ? "jwt" : "opaque",
          jwt: { sign: { alg } },
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
  tokenFor(resource: string, scope?: string): Promise<string>;
  post(path: string, form: Record<string, string>): Promise<Response>;
  /** Ends all connections, and accepts none until it is started. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

export async function startIssuer(key: Key, saying: Saying = {}): Promise<OidcIssuer> {
  let answer: RequestListener;
  const server = createServer((request, response) => answer(request, response));
  const listenAt = async (port: number): Promise<void> => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  await listenAt(0);
  const port = listeningPort(server);
  const issuer = `http://127.0.0.1:${port}`;
  const rotate = (...next: readonly Key[]): void =>
    void (answer = providerWith(issuer, next, saying));
  rotate(key);
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
    async tokenFor(resource, scope = "read") {
      const grant = { grant_type: "client_credentials", resource, scope };
      const body = (await (await post("/token", grant)).json()) as { access_token?: string };
      if (body.access_token === undefined) throw new Error(JSON.stringify(body));
      return body.access_token;
    },
    [Symbol.asyncDispose]: stop,
  };
}
