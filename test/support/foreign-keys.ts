import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { SignJWT } from "jose";
import { listeningPort } from "./listening-port.ts";

/** An ES256 key pair with its key ID. */
export interface SigningPair {
  readonly kid: string;
  readonly privateKey: KeyObject;
  /** The public key as JWK. */
  readonly jwk: object;
}

export function signingPair(kid: string): SigningPair {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" };
  return { kid, privateKey, jwk };
}

/** Signs a well-formed token with these claims, without those that are undefined. Times are in seconds. */
export function signToken(
  { kid, privateKey }: Pick<SigningPair, "kid" | "privateKey">,
  claims: Readonly<Record<string, unknown>>,
): Promise<string> {
  const kept = Object.entries(claims).filter(([, value]) => value !== undefined);
  return new SignJWT(Object.fromEntries(kept))
    .setProtectedHeader({ alg: "ES256", kid, typ: "JWT" })
    .sign(privateKey);
}

export interface KeySetServer extends AsyncDisposable {
  readonly url: string;
  readonly asked: () => number;
  close(): Promise<void>;
}

/** Serves the key set of an identity provider. If `keys` returns undefined, it answers 500. */
export async function startKeySetServer(
  keys: () => readonly object[] | undefined,
): Promise<KeySetServer> {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    const now = keys();
    response.statusCode = now === undefined ? 500 : 200;
    response.end(JSON.stringify({ keys: now }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  let closed: Promise<unknown> | undefined;
  const close = async (): Promise<void> => {
    if (closed === undefined) {
      closed = once(server, "close");
      server.close();
      server.closeAllConnections();
    }
    await closed;
  };
  return {
    url: `http://127.0.0.1:${listeningPort(server)}/jwks.json`,
    asked: () => asked,
    close,
    [Symbol.asyncDispose]: close,
  };
}
