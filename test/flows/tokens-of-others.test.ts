/** `others: ignore`: an application has tokens of its own, where people have theirs in a cookie. */
import { once } from "node:events";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ask } from "../support/ask.ts";
import { CheckClient, shortly } from "../support/check-client.ts";
import { editConfiguration } from "../support/edits.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  type WebSocketBackend,
} from "../support/websocket.ts";

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const THEIRS = `${encoded({ alg: "HS256" })}.${encoded({ iss: "https://app.example" })}.c2ln`;
const routes = [
  {
    name: "app",
    path: "/app",
    upstream: "app",
    tokenFrom: [
      { header: "Authorization", others: "ignore" },
      { query: "t", others: "ignore" },
      { cookie: "session" },
    ],
  },
  {
    name: "socket",
    path: "/socket",
    upstream: "sockets",
    tokenFrom: [{ websocketProtocol: true, others: "ignore" }, { cookie: "session" }],
  },
];

const stack = new AsyncDisposableStack();
let backend: EchoBackend;
let sockets: WebSocketBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = stack.use(await startEchoBackend());
  sockets = stack.use(await startWebSocketBackend());
  gate = stack.use(
    await startSallyport({
      target: backend.url,
      config: {
        routes,
        upstreams: { app: { targets: [backend.url] }, sockets: { targets: [sockets.url] } },
        server: { http2: true },
        decisions: { from: ["127.0.0.0/8"], grpc: true },
        tokens: { revocation: { logout: true } },
      },
    }),
  );
});
afterAll(() => stack.disposeAsync());

/** What a browser sends with the session, and the application's script with its token. */
const headers = () => ({
  authorization: `Bearer ${THEIRS}`,
  cookie: `a=1; session=${gate.token}`,
  "sec-fetch-site": "same-origin",
});

it("the session is the caller, and the application gets its token: HTTP/1.1 and HTTP/2", async () => {
  const answer = await ask(gate, `/app/x?t=${THEIRS}`, { headers: headers() });
  await using client = await connectHttp2(gate);
  const second = await client.ask({ ":path": `/app/x?t=${THEIRS}`, ...headers() });
  for (const { url, header } of [echoedBy(answer), echoedBy(second)]) {
    expect(header("x-auth-subject")).toBe("alice");
    expect(header("authorization")).toBe(`Bearer ${THEIRS}`);
    expect(header("cookie")).toBe("a=1");
    expect(url).toBe(`/app/x?t=${THEIRS}`);
  }
});

it("a token of ours in the same place is the caller, and removed", async () => {
  const own = { authorization: `Bearer ${gate.token}` };
  const { header } = echoedBy(await ask(gate, "/app/x", { headers: own }));
  expect([header("x-auth-subject"), header("authorization")]).toEqual(["alice", undefined]);
  expect((await ask(gate, "/app/x", { headers: { ...headers(), ...own } })).status).toBe(401);
});

it("a WebSocket offers the application's token, whose backend selects a protocol", async () => {
  const socket = new WebSocket(`wss://localhost:${gate.port}/socket`, ["v1", "bearer", THEIRS], {
    ca: gate.ca ?? "",
    headers: { cookie: `session=${gate.token}`, origin: `https://localhost:${gate.port}` },
  });
  await once(socket, "open");
  const { rawHeaders } = sockets.upgrades.at(-1) ?? { rawHeaders: [] };
  const at = rawHeaders.findIndex((name) => name.toLowerCase() === "sec-websocket-protocol");
  expect(rawHeaders[at + 1]?.replaceAll(" ", "")).toBe(`v1,bearer,${THEIRS}`);
  expect(rawHeaders).toContain("alice");
  socket.terminate();
});

it("another proxy is told the caller, and to remove nothing of the application's", async () => {
  const question = {
    "X-Forwarded-For": "192.0.2.50",
    "X-Original-Method": "GET",
    "X-Original-URI": `/app/x?t=${THEIRS}`,
  };
  const asked = await ask(gate, "/_sallyport/decide", { headers: { ...question, ...headers() } });
  expect([asked.status, asked.headers["x-auth-subject"]]).toEqual([200, "alice"]);
  await using client = new CheckClient(gate);
  const path = `/app/x?t=${THEIRS}`;
  const answer = shortly(await client.check({ path, headers: headers() }, 30_000));
  expect(answer).toMatchObject({ code: 0, queries: [] });
  expect(answer.headers).toMatchObject({ "x-auth-subject": "alice", cookie: "a=1" });
  expect(answer.headers).not.toHaveProperty("authorization");
  expect(answer.removed).not.toContain("authorization");
});

it("explain sees the same", async () => {
  const explain = async (token: string) =>
    JSON.parse(
      (await ask({ port: gate.adminPort }, "/-/explain?url=/app/x", { token })).body,
    ) as Record<string, Record<string, unknown>>;
  expect(await explain(THEIRS)).toMatchObject({
    verdict: { outcome: "refused", reason: "missing" },
    token: { reason: "missing" },
  });
  expect(await explain(gate.token)).toMatchObject({
    verdict: { outcome: "forwarded" },
    token: { place: "the header Authorization", subject: "alice" },
  });
});

it("the logout of the session works with the application's token beside it", async () => {
  const login = await ask(gate, "/api/logout", { method: "POST", headers: headers() });
  expect(login.status).toBe(200);
  expect((await ask(gate, "/app/x", { headers: headers() })).status).toBe(401);
});

it("an issuer that a reload takes away is one of others from then on, also for what runs", async () => {
  const pair = signingPair("k");
  const now = Math.floor(Date.now() / 1_000);
  const claims = { iss: "https://id.example", aud: "app", sub: "bob", iat: now, exp: now + 600 };
  const token = await signToken(pair, claims);
  const issuer = { issuer: "https://id.example", audience: "app", algorithms: ["ES256"] };
  const open = { name: "open", path: "/open", auth: "optional", upstream: "app" };
  await using own = await startSallyport({
    target: sockets.url,
    config: {
      routes: [{ ...open, tokenFrom: [{ header: "Authorization", others: "ignore" }] }],
      tokens: { trusted: [{ ...issuer, jwks: { file: "keys.json" } }] },
    },
    files: { "keys.json": JSON.stringify({ keys: [pair.jwk] }) },
  });
  const asBob = await openWebSocket(own, "/open", { authorization: `Bearer ${token}` });
  const asNobody = await openWebSocket(own, "/open", { authorization: `Bearer ${THEIRS}` });
  await editConfiguration(own, (config) => void delete config["tokens"]);
  expect(await asBob.closed).toBe(1008);
  const still = await Promise.race([asNobody.closed, Promise.resolve("open")]);
  expect(still).toBe("open");
});
