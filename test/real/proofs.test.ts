/** DPoP with a real authorization server and a real client, and with replicas that remember proofs together. */
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import * as client from "openid-client";
import { Provider } from "oidc-provider";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, askLogin, fieldsOf } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { listeningPort } from "../support/listening-port.ts";
import { missing } from "../support/program.ts";
import { clientKey, proofBy, withProof } from "../support/proofs.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import { redisMissing, type RedisServer, startRedis } from "./redis-server.ts";
import { type Replicas, startReplicas } from "./replicas.ts";

const CLIENT = { id: "robot", secret: "robots-secret" };
const ORDERS = "https://orders.example.com";

function providerWith(issuer: string): RequestListener {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = { ...privateKey.export({ format: "jwk" }), kty: "EC", alg: "ES256", use: "sig" };
  const answer = new Provider(issuer, {
    jwks: { keys: [key] },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        dpop_bound_access_tokens: true,
      },
    ],
    clientDefaults: { id_token_signed_response_alg: "ES256" },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      dPoP: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, audience) => ({
          scope: "read",
          audience,
          accessTokenTTL: 600,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  }).callback();
  return (request, response) => void answer(request, response);
}

describe("oidc-provider and openid-client", () => {
  let handler: RequestListener;
  const server = createServer((request, response) => handler(request, response));
  let backend: EchoBackend;
  let gate: Sallyport;
  let issuer: string;
  beforeAll(async () => {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    issuer = `http://127.0.0.1:${listeningPort(server)}`;
    handler = providerWith(issuer);
    backend = await startEchoBackend();
    gate = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: {
        server: { tls: "off" },
        metadata: {},
        tokens: {
          trusted: [
            {
              issuer,
              audience: ORDERS,
              algorithms: ["ES256"],
              discovery: true,
              proof: "require",
              claims: { subject: "client_id" },
            },
          ],
        },
      },
    });
  });
  afterAll(async () => {
    await gate.close();
    server.closeAllConnections();
    server.close();
    await backend.close();
  });

  /** Discovers the provider. @param skew how far the client's clock is ahead, in seconds. */
  const discover = (skew = 0): Promise<client.Configuration> =>
    client.discovery(
      new URL(issuer),
      CLIENT.id,
      { client_secret: CLIENT.secret, [client.clockSkew]: skew },
      undefined,
      { execute: [client.allowInsecureRequests] },
    );

  test("a client gets a bound token, and uses it", async () => {
    const config = await discover();
    const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair("ES256"));
    const grant = { resource: ORDERS, scope: "read" };
    const { access_token: token } = await client.clientCredentialsGrant(config, grant, { DPoP });
    const get = (at: string, use: client.Configuration, handle: client.DPoPHandle) =>
      client.fetchProtectedResource(
        ...([use, token, new URL(`http://127.0.0.1:${gate.port}${at}`), "GET"] as const),
        ...([undefined, undefined, { DPoP: handle }] as const),
      );
    for (const path of ["/orders", "/orders?of=alice", "/orders/caf%C3%A9"]) {
      const answer = await get(path, config, DPoP);
      expect(answer.status).toBe(200);
      expect(echoedBy({ body: await answer.text() }).header("x-auth-subject")).toBe(CLIENT.id);
    }
    expect((await ask(gate, "/orders", { token })).status).toBe(401);
    const other = client.getDPoPHandle(config, await client.randomDPoPKeyPair("ES256"));
    await expect(get("/orders", config, other)).rejects.toThrow();
  });

  test("a client whose clock is an hour behind learns a nonce by itself", async () => {
    const config = await discover();
    const keys = await client.randomDPoPKeyPair("ES256");
    const DPoP = client.getDPoPHandle(config, keys);
    const grant = { resource: ORDERS, scope: "read" };
    const { access_token: token } = await client.clientCredentialsGrant(config, grant, { DPoP });
    const late = await discover(-3_600);
    const handle = client.getDPoPHandle(late, keys);
    for (let time = 0; time < 2; time += 1) {
      const url = new URL(`http://127.0.0.1:${gate.port}/orders`);
      const options = { DPoP: handle };
      const answer = await client.fetchProtectedResource(
        ...([late, token, url, "GET", undefined, undefined, options] as const),
      );
      expect(answer.status).toBe(200);
    }
  });

  test("the metadata says that proofs are accepted", async () => {
    const answer = await ask(gate, "/.well-known/oauth-protected-resource");
    expect(fieldsOf(answer)["dpop_signing_alg_values_supported"]).toContain("ES256");
  });
});

const reason = redisMissing ?? missing("nginx");

describe.skipIf(reason !== undefined)(`three replicas and Redis ${reason ?? ""}`, () => {
  let redis: RedisServer;
  let replicas: Replicas;
  beforeAll(async () => {
    redis = await startRedis();
    replicas = await startReplicas(
      { shared: { kind: "redis", url: redis.url, timeout: "2s" }, tokens: { proof: "accept" } },
      2,
    );
  }, 60_000);
  afterAll(async () => {
    await replicas?.[Symbol.asyncDispose]();
    await redis?.[Symbol.asyncDispose]();
  });

  const HOST = "orders.example.com";

  /** Sends one request with the same proof to each replica. */
  const sentToAll = async (headers: Record<string, string>): Promise<number[]> => {
    const question = { headers: { host: HOST, ...headers } };
    const answers = await Promise.all(replicas.gates.map((gate) => ask(gate, "/orders", question)));
    return answers.map(({ status }) => status).toSorted((one, other) => one - other);
  };

  test("accept each proof once together, and once each while the server is away", async () => {
    const key = await clientKey();
    const login = proofBy(key, { htu: `http://${HOST}/api/authenticate`, htm: "POST" });
    const logIn = (at: number) =>
      askLogin(replicas.gates[at] ?? replicas.front, ALICE, { host: HOST, dpop: login });
    const first = await logIn(0);
    expect(first.status).toBe(200);
    const token = String(fieldsOf(first)["token"]);
    expect((await logIn(1)).status).toBe(400);
    const headers = (claims = {}): Record<string, string> =>
      withProof(token, proofBy(key, { htu: `http://${HOST}/orders`, token, claims }));
    for (let round = 0; round < 5; round += 1) {
      expect(await sentToAll(headers())).toEqual([200, 401, 401]);
    }
    // A nonce of one counts for all: they have the same keys.
    const late = { host: HOST, ...headers({ iat: 1 }) };
    const { headers: told } = await ask(replicas.front, "/orders", { headers: late });
    const nonce = String(told["dpop-nonce"]);
    expect(await sentToAll(headers({ iat: 1, nonce }))).toEqual([200, 401, 401]);
    await redis.kill();
    await until(() => replicas.gates.every((gate) => gate.log().some(isAway)), 20_000);
    const proof = headers();
    expect(await sentToAll(proof)).toEqual([200, 200, 200]);
    expect(await sentToAll(proof)).toEqual([401, 401, 401]);
    await redis.start();
    await until(async () => (await sentToAll(headers())).join() === "200,401,401", 20_000);
  }, 60_000);

  test("take the places of neither logins nor sign-outs while they wait for the server", async () => {
    const [gate = replicas.front] = replicas.gates;
    const key = await clientKey();
    const login = proofBy(key, { htu: `http://${HOST}/api/authenticate`, htm: "POST" });
    const bound = await askLogin(gate, ALICE, { host: HOST, dpop: login });
    const token = String(fieldsOf(bound)["token"]);
    const logIn = () => askLogin(gate, ALICE);
    const logins = await Promise.all(Array.from({ length: 8 }, logIn));
    redis.signal("SIGSTOP");
    const waiting = Array.from({ length: 900 }, () => {
      const proof = proofBy(key, { htu: `http://${HOST}/orders`, token });
      return ask(gate, "/orders", { headers: { host: HOST, ...withProof(token, proof) } });
    });
    const all = Promise.allSettled(waiting);
    await pause(1_000);
    const answers = await Promise.all([
      ...logins.map((each) =>
        ask(gate, "/api/logout", { method: "POST", token: String(fieldsOf(each)["token"]) }),
      ),
      ...Array.from({ length: 8 }, logIn),
    ]);
    redis.signal("SIGCONT");
    await all;
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  }, 60_000);
});

const isAway = ({ msg }: Readonly<Record<string, unknown>>): boolean =>
  String(msg).includes("state server cannot be used");
