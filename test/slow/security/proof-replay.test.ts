/**
 * Replayed proofs (RFC 9449 §11.1). Whoever sees a request with a DPoP proof, in a log or on a broken connection, has a token and a proof
 * that is still good for a minute. So a proof counts once: over every version of HTTP, in a handshake, and in every thread at once.
 * A server that remembers proofs in each thread, or forgets them when there are many, accepts it again.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { editConfiguration, type WrittenConfiguration } from "../../support/edits.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { signToken } from "../../support/foreign-keys.ts";
import { connectHttp2 } from "../../support/http2-client.ts";
import { connectTunnel } from "../../support/http2-websocket.ts";
import {
  boundToken,
  clientKey,
  proofBy,
  type ProofParts,
  withProof,
} from "../../support/proofs.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  type WebSocketBackend,
} from "../../support/websocket.ts";

const bound = await boundToken();
const { client: alice, token, issuer, pair, seconds } = bound;

let backend: EchoBackend;
let sockets: WebSocketBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  sockets = await startWebSocketBackend();
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    files: bound.files,
    config: {
      server: { workers: 3, http2: true },
      upstreams: { sockets: { targets: [sockets.url] } },
      routes: [
        { name: "socket", path: "/socket", upstream: "sockets" },
        { name: "all", path: "/", upstream: "app" },
      ],
      tokens: bound.tokens,
    },
  });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), sockets.close()]);
});

const authority = (): string => `127.0.0.1:${gate.port}`;

const headersFor = (path: string, parts: Partial<ProofParts> = {}): Record<string, string> =>
  withProof(token, proofBy(alice, { htu: `https://${authority()}${path}`, token, ...parts }));

const statusOf = async (path: string, headers: Record<string, string>): Promise<number> =>
  (await ask(gate, path, { headers })).status;

it("a proof counts once, whatever the version of HTTP", async () => {
  await using client = await connectHttp2(gate);
  const overHttp2 = async (headers: Record<string, string>): Promise<number> =>
    (await client.ask({ ":path": "/x", ":authority": authority(), ...headers })).status;
  const one = headersFor("/x");
  expect([await statusOf("/x", one), await overHttp2(one), await statusOf("/x", one)]).toEqual([
    ...[200, 401, 401],
  ]);
  const other = headersFor("/x");
  expect([await overHttp2(other), await overHttp2(other), await statusOf("/x", other)]).toEqual([
    ...[200, 401, 401],
  ]);
});

it("a proof of a handshake counts once, and for a GET of HTTPS", async () => {
  const headers = headersFor("/socket");
  using socket = await openWebSocket(gate, "/socket", headers);
  socket.send("a");
  expect(await socket.message()).toBe("a");
  await expect(openWebSocket(gate, "/socket", headers)).rejects.toThrow("answered with 401");
  const wss = headersFor("/socket", { htu: `wss://${authority()}/socket` });
  await expect(openWebSocket(gate, "/socket", wss)).rejects.toThrow("answered with 401");
  await using client = await connectHttp2(gate);
  const tunnelled = headersFor("/socket");
  const statuses = [];
  for (const fields of [headers, tunnelled, tunnelled]) {
    const { stream, status } = await connectTunnel(client, "/socket", {
      ":authority": authority(),
      ...fields,
    });
    statuses.push(status);
    stream.close();
  }
  expect(statuses).toEqual([401, 200, 401]);
});

it("a proof counts once, even if all threads get it at once", async () => {
  // The key is known to every thread before.
  await Promise.all(Array.from({ length: 60 }, () => statusOf("/x", headersFor("/x"))));
  for (let round = 0; round < 10; round += 1) {
    const headers = headersFor("/x");
    const statuses = await Promise.all(Array.from({ length: 12 }, () => statusOf("/x", headers)));
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 401)).toHaveLength(11);
  }
});

it("an identifier counts once, whatever else the proof says, but is no one else's", async () => {
  const jti = "chosen";
  expect(await statusOf("/x", headersFor("/x", { claims: { jti } }))).toBe(200);
  const later = { jti, iat: Math.floor(Date.now() / 1000) - 1, more: true };
  expect(await statusOf("/x", headersFor("/x", { claims: later }))).toBe(401);
  expect(await statusOf("/y", headersFor("/y", { claims: { jti } }))).toBe(401);
  const bob = await clientKey();
  const his = await signToken(pair, {
    iss: issuer,
    aud: "orders",
    sub: "bob",
    iat: seconds,
    exp: seconds + 600,
    cnf: { jkt: bob.jkt },
  });
  const htu = `https://${authority()}/x`;
  const proof = proofBy(bob, { htu, token: his, claims: { jti } });
  expect(await statusOf("/x", withProof(his, proof))).toBe(200);
});

it("a WebSocket needs no other proof after a reload, and ends when bound tokens are refused", async () => {
  const iat = Math.floor(Date.now() / 1000) - 58;
  using socket = await openWebSocket(gate, "/socket", headersFor("/socket", { claims: { iat } }));
  await until(() => Date.now() > (iat + 61) * 1000);
  const reload = async (change: (config: WrittenConfiguration) => void): Promise<void> => {
    await editConfiguration(gate, change);
    const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect(status).toBe(200);
  };
  await reload((config) => config.routes.unshift({ name: "new", path: "/new", upstream: "app" }));
  socket.send("still here");
  expect(await socket.message()).toBe("still here");
  await reload((config) => {
    config["tokens"] = { ...Object(config["tokens"]), proof: "refuse" };
  });
  expect(await socket.closed).toBe(1008);
});
