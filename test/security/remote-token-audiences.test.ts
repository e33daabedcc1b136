/**
 * The attack: a token that another server verifies gets an audience that it does not have. A route can require `aud`, and
 * a backend can get it in a header, so an identity has exactly the audiences that the server reports.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Explanation } from "../../src/core/explanation.ts";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { startRemoteServer, type RemoteServer } from "../support/remote-server.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";

/** The answers of the introspection endpoint and of the API server, by token. */
const INTROSPECTED: Readonly<Record<string, object>> = {
  "opaque-orders": { aud: "orders" },
  "opaque-both": { aud: ["invoices", "orders"] },
  "opaque-none": {},
};
const REVIEWED: Readonly<Record<string, object>> = {
  "cluster-orders": { audiences: ["orders", "https://kubernetes.default.svc"] },
  "cluster-none": {},
  "cluster-odd": { audiences: [1, null] },
  "cluster-api-server": { audiences: ["https://kubernetes.default.svc"] },
};

let backend: EchoBackend;
let provider: RemoteServer;
let cluster: RemoteServer;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  provider = await startRemoteServer(({ body }) => {
    const known = INTROSPECTED[new URLSearchParams(body).get("token") ?? ""];
    return { body: { active: known !== undefined, sub: "zoe", ...known } };
  });
  cluster = await startRemoteServer(({ body }) => {
    const known = REVIEWED[(JSON.parse(body) as { spec: { token: string } }).spec.token];
    const user = { username: "zoe" };
    return {
      status: 201,
      body: { status: { authenticated: known !== undefined, user, ...known } },
    };
  });
  const introspection = { url: provider.url, clientId: "sallyport", clientSecret: "secret" };
  const requiring = (name: string, aud: string) => ({
    name,
    path: `/${name}`,
    upstream: "app",
    require: { claims: [{ claim: "aud", equals: aud }] },
  });
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: {
      tokens: {
        trusted: [
          { issuer: "opaque", introspection },
          { issuer: "cluster", tokenReview: { apiServer: cluster.url, audiences: ["orders"] } },
        ],
      },
      identity: { claims: { "X-Aud": "aud" } },
      routes: [
        requiring("orders", "orders"),
        requiring("any", "*"),
        { name: "all", path: "/", upstream: "app" },
      ],
    },
  });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), provider.close(), cluster.close()]);
});

it.each(["cluster-none", "cluster-odd", "cluster-api-server"])(
  "%s, which the cluster vouches for, is not for us",
  async (token) => {
    expect((await ask(gate, "/x", { token })).status).toBe(401);
    const last = JSON.parse(cluster.asked.at(-1)?.body ?? "");
    expect(last.spec).toEqual({ token, audiences: ["orders"] });
  },
);

it.each([{}, { audiences: [] }])(
  "a configuration without audiences is an error: %j",
  async (written) => {
    const tokenReview = { apiServer: cluster.url, ...written };
    const trusted = [{ issuer: "cluster", tokenReview }];
    const started = startSallyport({ target: backend.url, config: { tokens: { trusted } } });
    await expect(started).rejects.toThrow("needs an audience that callers ask a token for");
  },
);

describe.each([
  ["opaque-orders", "orders", 200],
  ["opaque-both", "invoices,orders", 200],
  ["opaque-none", undefined, 403],
  ["cluster-orders", "orders,https://kubernetes.default.svc", 200],
])("the audiences of %s", (token, header, status) => {
  it("are those that the server reports", async () => {
    expect(echoedBy(await ask(gate, "/x", { token })).header("x-aud")).toBe(header);
  });

  it("are compared with those that a route requires", async () => {
    expect((await ask(gate, "/orders", { token })).status).toBe(status);
    expect((await ask(gate, "/any", { token })).status).toBe(403);
  });

  it("are shown by explain", async () => {
    const { body } = await ask({ port: gate.adminPort }, "/-/explain?url=/orders", {
      headers: { authorization: `Bearer ${token}` },
    });
    const { requirements } = JSON.parse(body) as Explanation;
    expect(requirements).toMatchObject([{ held: header?.split(",") ?? [], met: status === 200 }]);
  });
});
