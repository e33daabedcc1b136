/**
 * Every question that Sallyport asks another server on a caller's behalf, and every way in which that server can fail:
 * each ends in time, in one clear answer.
 */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { describe, expect, it } from "vitest";
import { ask, askLogin, fieldsOf } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { editConfiguration } from "../../support/edits.ts";
import { compact } from "../../support/compact-token.ts";
import { listeningPort } from "../../support/listening-port.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";

const LIMIT_MS = 700;
/** Beyond the limit: what a busy machine takes. */
const IN_TIME_MS = 5_000;

type Behaviour = (socket: Socket, stop: AbortSignal) => void;

/** Writes it again and again until the connection or the test ends. */
const repeating =
  (text: string, everyMs: number): Behaviour =>
  (socket, stop) => {
    const timer = setInterval(() => void socket.write(text), everyMs);
    const end = (): void => clearInterval(timer);
    socket.once("close", end);
    stop.addEventListener("abort", end);
  };

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

/** How the server fails once TLS is open; `silent` and `untrusted` never get that far. */
const FAULTS: Readonly<Record<string, Behaviour>> = {
  "whose certificate is not accepted": () => undefined,
  "that accepts the connection and is silent": () => undefined,
  "that is silent after the handshake": () => undefined,
  "that trickles its answer": repeating("H", 50),
  "whose answer never ends": (socket, stop) => {
    socket.write(HEAD);
    repeating(`"${"x".repeat(100_000)}`, 5)(socket, stop);
  },
  "that closes early": (socket) => socket.once("data", () => socket.destroy()),
};

/** Starts a server that speaks TLS at once, or after a client of PostgreSQL has asked for it, and then fails. */
async function startFaultyServer(fault: string) {
  const { server: pair } = await testCertificates();
  const stop = new AbortController();
  const sockets = new Set<Socket>();
  let connections = 0;
  const secure = (below: Socket): void => {
    const socket = new TLSSocket(below, { isServer: true, ...pair });
    socket.on("error", () => below.destroy());
    FAULTS[fault]?.(socket, stop.signal);
    socket.resume();
  };
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("error", () => socket.destroy()).on("close", () => sockets.delete(socket));
    if (fault === "that accepts the connection and is silent") return;
    socket.once("readable", () => {
      const first: Buffer | null = socket.read();
      if (first === null) return;
      // The request for TLS of PostgreSQL begins with its length.
      if (first[0] === 0) socket.write("S");
      else socket.unshift(first);
      secure(socket);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: listeningPort(server),
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      stop.abort();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** The stores of users that ask a server. */
function storesAt(port: number, trust: object): Readonly<Record<string, object>> {
  const common = { timeout: `${LIMIT_MS}ms`, ...trust };
  return {
    http: { kind: "http", url: `https://127.0.0.1:${port}/ask`, ...common },
    ldap: {
      kind: "ldap",
      url: `ldaps://127.0.0.1:${port}`,
      ...common,
      search: { base: "dc=test", filter: "(uid={username})" },
    },
    postgres: {
      kind: "postgres",
      url: `postgres://a:b@127.0.0.1:${port}/c`,
      ...common,
      query: "select password_hash from users where name = $1",
    },
  };
}

const ISSUER = "https://issuer.test";

function configuration(port: number, trust: object, limits: object): Record<string, unknown> {
  const timeout = `${LIMIT_MS}ms`;
  const url = `https://127.0.0.1:${port}/ask`;
  const route = (name: string, more: object = {}) => ({
    name,
    path: `/${name}/`,
    upstream: "app",
    ...more,
  });
  return {
    server: { tls: "off" },
    tokens: {
      trusted: [
        {
          issuer: "opaque",
          audience: "a",
          introspection: {
            url,
            clientId: "a",
            clientSecret: "bbbbbbbbbbbbbbbb",
            timeout,
            ...trust,
          },
        },
        {
          issuer: ISSUER,
          audience: "a",
          algorithms: ["RS256"],
          jwks: { url, ...trust },
        },
        {
          issuer: `https://127.0.0.1:${port}`,
          audience: "a",
          algorithms: ["RS256"],
          discovery: true,
          ...(Object.keys(trust).length === 0 ? {} : { jwks: trust }),
        },
        {
          issuer: "cluster",
          tokenReview: { apiServer: url, audiences: ["orders"], timeout, ...trust },
        },
      ],
    },
    authorization: {
      call: { kind: "http", url, timeout, ...trust },
      review: {
        kind: "subjectAccessReview",
        apiServer: url,
        timeout,
        ...trust,
        issuers: ["sallyport"],
      },
    },
    upstreams: { versions: { targets: [`https://127.0.0.1:${port}`], tls: trust, ...limits } },
    routes: [
      route("call", { authorize: "call" }),
      route("review", { authorize: "review" }),
      route("rest", { path: "/" }),
    ],
    version: { upstream: "versions", path: "/version" },
  };
}

type Asking = (gate: Sallyport) => Promise<{ readonly status: number; readonly body: string }>;

const withToken =
  (path: string, token?: string): Asking =>
  (gate) =>
    ask(gate, path, { token: token ?? gate.token });

const jwtOf = (issuer: string): string =>
  compact(
    { alg: "RS256", kid: "a", typ: "JWT" },
    { iss: issuer, sub: "a", aud: "a", exp: Math.floor(Date.now() / 1000) + 600 },
    () => Buffer.alloc(256),
  );

const LOGIN: Asking = (gate) => askLogin(gate, { username: "bob", password: "b" });

/** Each question but a login. An opaque token is shown to two servers. */
const questionsTo = (port: number): Readonly<Record<string, Asking>> => ({
  "a version": withToken("/api/version"),
  "an opaque token": withToken("/x", "opaque"),
  "keys at an address": withToken("/x", jwtOf(ISSUER)),
  "keys by discovery": withToken("/x", jwtOf(`https://127.0.0.1:${port}`)),
  "an authorization by HTTP": withToken("/call/x"),
  "a SubjectAccessReview": withToken("/review/x"),
});

/** The faults that end by themselves, so that no time limit is needed. */
const ENDING = ["whose certificate is not accepted", "that closes early"];

async function start(fault: string, port: number) {
  const { ca } = await testCertificates();
  const trust = fault === "whose certificate is not accepted" ? {} : { caFile: "ca.crt" };
  const limit = `${LIMIT_MS}ms`;
  const limits = ENDING.includes(fault) ? {} : { timeouts: { connect: limit, response: limit } };
  const gate = await startSallyport({
    target: "http://127.0.0.1:9",
    files: { "ca.crt": ca },
    config: configuration(port, trust, limits),
  });
  return { gate, trust };
}

/** Asks, and says what came of it. */
async function outcomeOf(asking: Asking, gate: Sallyport) {
  const began = performance.now();
  const answer = await asking(gate);
  const tookMs = performance.now() - began;
  return [answer.status, fieldsOf(answer)["success"], tookMs < IN_TIME_MS || tookMs];
}

describe.each(Object.keys(FAULTS))("a server %s", (fault) => {
  it("gets every caller one answer in time, and is not asked without end", async () => {
    await using server = await startFaultyServer(fault);
    const started = await start(fault, server.port);
    await using gate = started.gate;
    const questions = Object.entries(questionsTo(server.port));
    const found = await Promise.all(
      questions.map(async ([name, asking]) => [name, await outcomeOf(asking, gate)]),
    );
    for (const [name, store] of Object.entries(storesAt(server.port, started.trust))) {
      await editConfiguration(gate, (config) => {
        config["users"] = [{ kind: "file", path: "users.yaml" }, store];
      });
      const admin = { port: gate.adminPort };
      expect((await ask(admin, "/-/reload", { method: "POST" })).status).toBe(200);
      found.push([name, await outcomeOf(LOGIN, gate)]);
    }
    expect(found).toEqual(found.map(([name]) => [name, [503, false, true]]));
    expect(server.connections()).toBeLessThan(30);
    expect(gate.log().filter(({ msg }) => msg === "uncaught error")).toEqual([]);
  });
});
