import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { rename } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { TrustedIssuer } from "../../src/tokens/trusted/trusted-keys.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { ecPair, ownKeys, verifierFor } from "./fixture.ts";

export const OTHER = "https://id.example.com";
export const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const later = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const ec = ecPair();

export const jwkOf = (key: KeyObject, more: object = {}): object => ({
  ...key.export({ format: "jwk" }),
  ...more,
});
export const jwksOf = (...keys: object[]): string => JSON.stringify({ keys });
export const first = jwksOf(jwkOf(rsa.publicKey, { kid: "one" }));
export const second = jwksOf(jwkOf(later.publicKey, { kid: "two" }));
export const theirs = { iss: OTHER, aud: "theirs" };
export const signer = { kid: "one", algorithm: "RS256", key: rsa.privateKey };
export const laterSigner = { kid: "two", algorithm: "RS256", key: later.privateKey };

export const own = await ownKeys();

export function trusting(jwks: TrustedIssuer["jwks"], more: Partial<TrustedIssuer> = {}) {
  const trusted: TrustedIssuer = {
    issuer: OTHER,
    audience: "theirs",
    jwks,
    algorithms: ["RS256", "ES256"],
    clockSkew: 60_000,
    ...more,
  };
  return verifierFor(own, { trusted: [trusted] });
}

export async function trustingFile(jwks: string, more: Partial<TrustedIssuer> = {}) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const file = await directory.write("jwks.json", jwks);
  const replace = async (content: string): Promise<void> =>
    rename(await directory.write("jwks.json.new", content), file);
  return { ...trusting({ file }, more), file, replace };
}

/** An identity provider with a configurable response. */
export async function provider(answer: RequestListener | string) {
  const state = { asked: 0, answer };
  const server = createServer((request, response) => {
    state.asked += 1;
    if (typeof state.answer === "string") response.end(state.answer);
    else state.answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(close);
  const { port } = server.address() as AddressInfo;
  return { state, close, url: `http://127.0.0.1:${port}/jwks.json` };
}
