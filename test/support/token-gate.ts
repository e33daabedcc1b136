import { chmod } from "node:fs/promises";
import { calculateJwkThumbprint } from "jose";
import { afterAll, beforeEach, expect } from "vitest";
import { signingPair } from "./foreign-keys.ts";
import type { Gate } from "./gate.ts";
import { use } from "./pair.ts";
import { type RawBackend, startRawBackend } from "./raw-backend.ts";
import { exchange, request, type RawResponse } from "./raw-client.ts";
import { type SallyportOptions, startSallyport } from "./sallyport.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const pair = signingPair("");

/** The signing key of the gate of `useTokenGate`. An attacker knows only the public key and the key ID. */
export const OWN = {
  privateKey: pair.privateKey,
  jwk: pair.jwk,
  kid: await calculateJwkThumbprint(pair.jwk),
};

export const seconds = (): number => Math.floor(Date.now() / 1000);

/** Returns claims that the gate accepts, for mallory. Claims that are undefined are omitted. */
export function claims(more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { iss, aud, sub } = { iss: "sallyport", aud: "sallyport", sub: "mallory" };
  return { iss, aud, sub, groups: [], iat: seconds() - 10, exp: seconds() + 600, ...more };
}

export const header = (more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  alg: "ES256",
  kid: OWN.kid,
  typ: "JWT",
  ...more,
});

/** Starts Sallyport with the signing key `OWN` in front of a raw backend, for all tests of the enclosing `describe`. */
export function useTokenGate(options: Omit<SallyportOptions, "target"> = {}) {
  const stack = new AsyncDisposableStack();
  afterAll(() => stack.disposeAsync());
  const standing = use(
    () => startRawBackend(),
    async (target) => {
      const keys = stack.use(await temporaryDirectory());
      const pem = OWN.privateKey.export({ format: "pem", type: "pkcs8" });
      await chmod(await keys.write("own.pem", pem), 0o600);
      const tokens = { keys: keys.path, ...Object(options.config?.["tokens"]) };
      // Most tests open many connections, and a token means the same on each.
      const server = { tls: "off", ...Object(options.config?.["server"]) };
      const config = { ...options.config, server, tokens };
      return startSallyport({ withoutToken: true, ...options, target, config });
    },
  );
  beforeEach(() => standing().backend.forget());
  return standing;
}

/** Sends a token exactly as given. @returns the response. */
export async function present(gate: Gate, token: string): Promise<RawResponse> {
  const [answer] = await presentAll(gate, [token]);
  if (answer === undefined) throw new Error("no answer");
  return answer;
}

/** Sends tokens in pipelined requests on one connection. @returns their responses. */
export async function presentAll(
  gate: Gate,
  tokens: readonly string[],
): Promise<readonly RawResponse[]> {
  const requests = tokens.map((token) =>
    request(["GET /orders HTTP/1.1", "Host: localhost", `Authorization: Bearer ${token}`]),
  );
  return (await exchange(gate, requests.join(""), { responses: tokens.length })).responses;
}

/** Expects that each token gets the identical refusal for invalid tokens, and that nothing has reached the backend. */
export async function expectAllRefused(
  { gate, backend }: { readonly gate: Gate; readonly backend: Pick<RawBackend, "seen"> },
  tokens: readonly string[],
): Promise<void> {
  const answers = await presentAll(gate, tokens);
  expect(answers).toHaveLength(tokens.length);
  for (const answer of answers) {
    expect(answer.status).toBe(401);
    expect(answer.header("www-authenticate")).toBe(
      'Bearer realm="sallyport", error="invalid_token"',
    );
    expect(JSON.parse(answer.body)).toEqual({
      id: expect.toSatisfy(Number.isSafeInteger),
      message: "Full authentication is required to access this resource",
      success: false,
    });
  }
  expect(backend.seen()).toEqual([]);
}
