/** Bound tokens and other servers: one that introspects the token, and one that is asked about its caller. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { clientKey, proofBy, withProof } from "../support/proofs.ts";
import {
  type RemoteReply,
  type RemoteServer,
  startRemoteServer,
} from "../support/remote-server.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const alice = await clientKey();
const cnf = { jkt: alice.jkt };

/** What the server says of each opaque token. */
const KNOWN: Readonly<Record<string, object>> = {
  bound: { sub: "alice", token_type: "DPoP", cnf },
  untyped: { sub: "alice", cnf },
  bearer: { sub: "alice", token_type: "Bearer" },
  "typed-only": { sub: "alice", token_type: "DPoP" },
};

let backend: EchoBackend;
let introspection: RemoteServer;
let policy: RemoteServer;
let gate: Sallyport;
const held: ((reply: RemoteReply) => void)[] = [];
beforeAll(async () => {
  backend = await startEchoBackend();
  introspection = await startRemoteServer(({ body }) => {
    const said = KNOWN[new URLSearchParams(body).get("token") ?? ""];
    return { body: said === undefined ? { active: false } : { active: true, ...said } };
  });
  policy = await startRemoteServer(() => new Promise((resolve) => held.push(resolve)));
  const { url } = introspection;
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: {
      server: { tls: "off" },
      authorization: { opa: { kind: "http", url: policy.url, timeout: "5s", cache: "0s" } },
      routes: [
        { name: "asked", path: "/asked/", authorize: "opa", upstream: "app" },
        { name: "all", path: "/", upstream: "app" },
      ],
      tokens: {
        trusted: [
          {
            issuer: "opaque:main",
            proof: "accept",
            introspection: { url, clientId: "sallyport", clientSecret: "secret" },
          },
        ],
      },
    },
  });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), introspection.close(), policy.close()]);
});

const proofFor = (path: string, token: string): Record<string, string> =>
  withProof(token, proofBy(alice, { htu: `http://127.0.0.1:${gate.port}${path}`, token }));

it.each(["bound", "untyped"])("an introspected token %j needs a proof", async (token) => {
  expect((await ask(gate, "/x", { headers: proofFor("/x", token) })).status).toBe(200);
  expect((await ask(gate, "/x", { headers: proofFor("/x", token) })).status).toBe(200);
  expect((await ask(gate, "/x", { token })).status).toBe(401);
});

it("an introspected token that is not bound is a bearer token, unless its type says otherwise", async () => {
  expect((await ask(gate, "/x", { token: "bearer" })).status).toBe(200);
  expect((await ask(gate, "/x", { headers: proofFor("/x", "bearer") })).status).toBe(401);
  expect((await ask(gate, "/x", { token: "typed-only" })).status).toBe(401);
  expect((await ask(gate, "/x", { headers: proofFor("/x", "typed-only") })).status).toBe(401);
});

it("a proof counts once, and still if the configuration changes while a server is asked", async () => {
  const headers = proofFor("/asked/", "bound");
  const first = ask(gate, "/asked/", { headers });
  await until(() => held.length === 1);
  expect((await ask(gate, "/asked/", { headers })).status).toBe(401);
  await editConfiguration(gate, (config) =>
    config.routes.unshift({ name: "new", path: "/new", upstream: "app" }),
  );
  const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
  held[0]?.({ body: {} });
  // It is decided again, by the new configuration.
  await until(() => held.length === 2);
  held[1]?.({ body: {} });
  expect((await first).status).toBe(200);
});
