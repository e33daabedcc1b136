/** A real identity provider: discovery, key rotation under load, an outage with a restart, introspection. */
import { generateKeyPairSync, type webcrypto } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Configuration, Provider } from "oidc-provider";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { listeningPort } from "../support/listening-port.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const CLIENT = { id: "robot", secret: "robots-secret" };
const ORDERS = "https://orders.example.com";
const OPAQUE = "https://opaque.example.com";

type Key = webcrypto.JsonWebKey & {
  readonly kid: string;
  readonly alg: "ES256";
  readonly use: "sig";
};

function newKey(kid: string): Key {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { ...privateKey.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" };
}

/** Creates a provider with these keys; the first one signs. */
function providerWith(issuer: string, keys: readonly Key[]): RequestListener {
  const configuration: Configuration = {
    jwks: { keys: keys.map((key) => ({ ...key, kty: "EC" })) },
    clients: [
      {
        ...{ client_id: CLIENT.id, client_secret: CLIENT.secret },
        ...{ grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
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
          ...{ scope: "read", audience, accessTokenTTL: 600 },
          accessTokenFormat: audience === ORDERS ? "jwt" : "opaque",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  };
  const answer = new Provider(issuer, configuration).callback();
  return (request, response) => void answer(request, response);
}

let handler: RequestListener;
let issuer: string;
let backend: EchoBackend;
let directory: TemporaryDirectory;
const server = createServer((request, response) => handler(request, response));
const keys = [newKey("first"), newKey("second"), newKey("third")] as const;
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  issuer = `http://127.0.0.1:${listeningPort(server)}`;
  handler = providerWith(issuer, [keys[0]]);
  backend = await startEchoBackend();
  directory = await temporaryDirectory();
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await Promise.all([backend.close(), directory.close()]);
});

function start(): Promise<Sallyport> {
  const introspection = {
    ...{ url: `${issuer}/token/introspection`, clientId: CLIENT.id, clientSecret: CLIENT.secret },
    cache: "1s",
  };
  return startSallyport({
    target: backend.url,
    config: {
      tokens: {
        trusted: [
          {
            ...{ issuer, audience: ORDERS, algorithms: ["ES256"], discovery: true },
            jwks: { cacheFile: join(directory.path, "keys.json") },
          },
          { issuer: "opaque", introspection, claims: { subject: "client_id" } },
        ],
      },
    },
  });
}

async function post(path: string, form: Record<string, string>): Promise<Response> {
  const pair = Buffer.from(`${CLIENT.id}:${CLIENT.secret}`).toString("base64");
  return fetch(`${issuer}${path}`, {
    method: "POST",
    headers: { authorization: `Basic ${pair}` },
    body: new URLSearchParams(form),
  });
}

async function tokenFor(resource: string): Promise<string> {
  const grant = { grant_type: "client_credentials", resource, scope: "read" };
  const answer = await post("/token", grant);
  const body = (await answer.json()) as { readonly access_token?: string };
  if (body.access_token === undefined) throw new Error(JSON.stringify(body));
  return body.access_token;
}

describe("oidc-provider", () => {
  test("its JWTs are accepted with discovery, and its keys rotate under load without a 401", async () => {
    await using gate = await start();
    const statuses: number[] = [];
    const over = new AbortController();
    const load = Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted) {
        const token = await tokenFor(ORDERS);
        statuses.push((await ask(gate, "/x", { token })).status);
      }
    });
    const signers: string[] = [];
    // Each key signs at once, although no client has seen its public key: a provider should not do this.
    for (const next of [keys[1], keys[2]]) {
      await sleep(8_000);
      handler = providerWith(issuer, [next, keys[0]]);
      signers.push(next.kid);
    }
    await sleep(2_000);
    over.abort();
    await Promise.all(load);
    expect(signers).toEqual(["second", "third"]);
    expect(statuses.length).toBeGreaterThan(50);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const echoed = echoedBy(await ask(gate, "/x", { token: await tokenFor(ORDERS) }));
    expect(echoed.header("x-auth-subject")).toBe(CLIENT.id);
    expect(echoed.header("x-auth-issuer")).toBe(issuer);
  }, 60_000);

  test("its opaque tokens are introspected, and refused once revoked", async () => {
    await using gate = await start();
    const token = await tokenFor(OPAQUE);
    expect(token).not.toContain(".");
    const answer = await ask(gate, "/x", { token });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBe(CLIENT.id);
    expect(echoedBy(answer).header("x-auth-issuer")).toBe("opaque");
    expect((await ask(gate, "/x", { token: `${token}x` })).status).toBe(401);
    expect((await post("/token/revocation", { token })).status).toBe(200);
    await until(async () => (await ask(gate, "/x", { token })).status === 401);
  }, 30_000);

  test("while it is down, its JWTs are accepted, even after a restart; opaque tokens get 503", async () => {
    const working = handler;
    const tokens = await Promise.all(Array.from({ length: 40 }, () => tokenFor(ORDERS)));
    const opaque = await tokenFor(OPAQUE);
    const statusesOf = async (gate: Sallyport, these: readonly string[]): Promise<Set<number>> =>
      new Set(
        await Promise.all(these.map(async (token) => (await ask(gate, "/x", { token })).status)),
      );
    {
      await using gate = await start();
      expect(await statusesOf(gate, tokens.slice(0, 5))).toEqual(new Set([200]));
      await until(() => readFile(join(directory.path, "keys.json")).then(Boolean, () => false));
      handler = (request) => request.socket.destroy();
      server.closeAllConnections();
      expect(await statusesOf(gate, tokens.slice(5, 20))).toEqual(new Set([200]));
    }
    await using gate = await start();
    expect(await statusesOf(gate, tokens)).toEqual(new Set([200]));
    expect(await statusesOf(gate, [opaque])).toEqual(new Set([503]));
    handler = working;
    expect(await statusesOf(gate, [opaque])).toEqual(new Set([200]));
  }, 60_000);
});
