/**
 * A server whose certificate nobody checks (fastify/reply-from CVE-2026-107318 verified none by default). Whoever is on
 * the way then reads tokens and passwords, and says yes in the server's name. A client that forgets the check works, so
 * only a test of every client finds it: each connection that Sallyport opens, to a server with a valid certificate, a
 * self-signed one, one for another name, and one whose names hold a NUL (CVE-2026-106069 in Node).
 */
import { createServer, type Socket } from "node:net";
import { createSecureContext, TLSSocket } from "node:tls";
import { generate } from "selfsigned";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { HashingPool } from "../../../src/credentials/hashing/hashing-pool.ts";
import { openUserStore, type StoreSettings } from "../../../src/credentials/stores/store-kinds.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { contentOf, STRANGER } from "../../credentials/fixture.ts";
import { ask } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { listening } from "../../support/listening.ts";
import { recordedLog } from "../../support/recorded-log.ts";
import { startPlainBackend } from "../../support/plain-backend.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";
import { openWebSocket } from "../../support/websocket.ts";

interface Pair {
  readonly key: string;
  readonly cert: string;
}

async function selfMade(...names: string[]): Promise<Pair> {
  const altNames = names.map((value) => ({ type: 2 as const, value }));
  const address = { type: 7 as const, ip: "127.0.0.1" };
  const { private: key, cert } = await generate([{ name: "commonName", value: "localhost" }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      {
        name: "subjectAltName",
        altNames: names.includes("localhost") ? [...altNames, address] : altNames,
      },
    ],
  });
  return { key, cert };
}

const { ca, server: valid, other } = await testCertificates();
const selfSigned = await selfMade("localhost");
const nul = await selfMade("localhost\0.evil.example", "127.0.0.1\0.evil.example", "127.0.0.1");
/** The certificate of each server, the authorities that its clients have, and whether they may talk to it. */
const SERVERS: Readonly<Record<string, { pair: Pair; authorities: string; fits: boolean }>> = {
  "a valid certificate": { pair: valid, authorities: ca, fits: true },
  "a self-signed certificate": { pair: selfSigned, authorities: ca, fits: false },
  "a certificate for another name": { pair: other, authorities: ca, fits: false },
  "a trusted certificate with NUL in its names": {
    pair: nul,
    authorities: nul.cert,
    fits: false,
  },
};

/** Counts connections, and what arrives after the handshake. Answers nothing. */
async function recorder(pair: Pair, startsInClear = false) {
  const counts = { connections: 0, received: 0 };
  const secureContext = createSecureContext(pair);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    counts.connections += 1;
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    const secure = (): void => {
      const ALPNProtocols = ["h2", "http/1.1"];
      const secured = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols });
      secured.on("error", () => socket.destroy());
      secured.on("data", (chunk: Buffer) => (counts.received += chunk.length));
    };
    if (!startsInClear) return secure();
    // PostgreSQL: SSLRequest and the answer to it.
    socket.once("data", () => socket.write("S", secure));
  });
  const { port } = await listening(server);
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port, counts };
}

const CLIENTS = [
  ...["http1", "http2", "auto", "websocket", "websocket2", "health", "probe", "version", "mirror"],
  ...["jwks", "discovery", "introspection", "review", "rbac", "policy", "shared", "tracing"],
] as const;
type Client = (typeof CLIENTS)[number];
const STORES = ["ldap", "postgres", "http"] as const;

describe.each(Object.entries(SERVERS))("with %s", (_what, { pair, authorities, fits }) => {
  /** What arrived at a server: something if its certificate is valid, and otherwise nothing. */
  async function expectFits({ counts }: Awaited<ReturnType<typeof recorder>>, name: string) {
    await until(() => counts.connections > 0 && (counts.received > 0 || !fits)).catch(
      () => undefined,
    );
    expect([name, counts.connections > 0, counts.received > 0]).toEqual([name, true, fits]);
  }

  it("every connection of the process", async () => {
    const made = await Promise.all(
      CLIENTS.map(async (name) => [name, await recorder(pair)] as const),
    );
    const servers = new Map<Client, (typeof made)[number][1]>(made);
    const url = (name: Client, host = "127.0.0.1"): string =>
      `https://${host}:${servers.get(name)?.port}`;
    await using backend = await startPlainBackend((_request, response) => response.end("ok"));
    const access = { caFile: "ca.pem", timeout: "300ms", cache: "0s" };
    const times = { connect: "1s", response: "300ms" };
    const tls = { caFile: "ca.pem" };
    const upstream = (name: Client, more: object = {}) => ({
      [name]: {
        targets: [url(name)],
        tls,
        timeouts: times,
        websocket: { handshake: "300ms" },
        ...more,
      },
    });
    const keyed = { audience: "orders", algorithms: ["ES256"] };
    const routes = ["http1", "http2", "auto", "websocket", "websocket2"].map((name) => ({
      name,
      path: `/${name}`,
      auth: "none",
      upstream: name,
    }));
    await using gate = await startSallyport({
      target: backend.url,
      files: { "ca.pem": authorities },
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: url("tracing"),
        OTEL_BSP_SCHEDULE_DELAY: "50",
        OTEL_TRACES_SAMPLER: "always_on",
        ...(await certificateVariable(authorities)),
      },
      config: {
        server: { tls: "off" },
        admin: { probes: [{ path: "/probe", upstream: "probe", target: "/" }] },
        version: { upstream: "version", path: "/version" },
        shared: {
          kind: "redis",
          url: url("shared").replace("https:", "rediss:"),
          caFile: "ca.pem",
        },
        tokens: {
          trusted: [
            { ...keyed, issuer: "https://a", jwks: { url: url("jwks"), caFile: "ca.pem" } },
            { ...keyed, issuer: url("discovery"), discovery: true, jwks: { caFile: "ca.pem" } },
            {
              issuer: "opaque",
              introspection: {
                url: url("introspection"),
                clientId: "a",
                clientSecret: "b",
                ...access,
              },
            },
            {
              issuer: "cluster",
              tokenReview: { apiServer: url("review"), audiences: ["orders"], ...access },
            },
          ],
        },
        authorization: {
          rbac: {
            kind: "subjectAccessReview",
            apiServer: url("rbac"),
            issuers: ["sallyport"],
            ...access,
          },
          policy: { kind: "http", url: url("policy"), ...access },
        },
        upstreams: {
          ...upstream("http1"),
          ...upstream("http2", { protocol: "http2" }),
          ...upstream("auto", { protocol: "auto" }),
          ...upstream("websocket"),
          ...upstream("websocket2", { protocol: "http2" }),
          ...upstream("health", {
            targets: [url("health"), url("health", "localhost")],
            health: { path: "/", interval: "100ms" },
          }),
          ...upstream("probe"),
          ...upstream("version"),
          ...upstream("mirror"),
        },
        routes: [
          ...routes,
          { name: "mirrored", path: "/mirrored", upstream: "app", mirror: { upstream: "mirror" } },
          { name: "rbac", path: "/rbac", upstream: "app", authorize: "rbac" },
          { name: "policy", path: "/policy", upstream: "app", authorize: "policy" },
          { name: "rest", path: "/", upstream: "app" },
        ],
      },
    });
    const get = async (path: string, token = gate.token): Promise<number> =>
      (await ask(gate, path, { token })).status;
    for (const name of ["http1", "http2", "auto"]) {
      expect([name, await get(`/${name}`)]).toEqual([name, fits ? 504 : 502]);
    }
    for (const name of ["websocket", "websocket2"]) {
      await expect(openWebSocket(gate, `/${name}`)).rejects.toThrow(/answered with 50[24]/);
    }
    expect(await get("/x", "opaque")).toBe(503);
    expect([await get("/rbac"), await get("/policy"), await get("/mirrored")]).toEqual([
      503, 503, 200,
    ]);
    expect(await get("/api/version")).toBeGreaterThanOrEqual(500);
    await ask({ port: gate.adminPort }, "/probe");
    for (const [name, server] of servers) await expectFits(server, name);
  }, 60_000);

  it.each(STORES)("a user store: %s", async (kind) => {
    const server = await recorder(pair, kind === "postgres");
    const files = await temporaryDirectory();
    onTestFinished(() => files.close());
    const caFile = await files.write("ca.pem", authorities);
    const verifier = new HashingPool({ concurrency: 1, queue: 10 });
    onTestFinished(() => verifier.close());
    const common = { caFile, connections: 1, timeout: 500 };
    const at = `127.0.0.1:${server.port}`;
    const settings: Readonly<Record<(typeof STORES)[number], StoreSettings>> = {
      ldap: {
        kind: "ldap",
        url: `ldaps://${at}`,
        ...common,
        search: { base: "dc=example", filter: "(uid={username})" },
      },
      postgres: {
        kind: "postgres",
        url: `postgres://a:b@${at}/users`,
        tls: true,
        ...common,
        query: "SELECT password_hash FROM users WHERE name = $1",
      },
      http: {
        kind: "http",
        url: `https://${at}/`,
        format: "json",
        ...common,
        fields: { username: "u", password: "p" },
        status: { success: [200], wrong: [401], unknown: [] },
        subject: "/subject",
        groups: "/groups",
      },
    };
    const context = { contentOf, log: recordedLog(), verifier, clock: systemClock, queue: 2 };
    const store = await openUserStore(settings[kind], context);
    onTestFinished(() => store.close());
    const verdict = await store.verify("alice", "apple", STRANGER);
    expect(verdict).toEqual({ result: "unavailable" });
    await expectFits(server, kind);
  });
});

/** OpenTelemetry's exporter takes its authorities from a file that a variable names. */
async function certificateVariable(authorities: string): Promise<Record<string, string>> {
  const files = await temporaryDirectory();
  onTestFinished(() => files.close());
  return { OTEL_EXPORTER_OTLP_CERTIFICATE: await files.write("ca.pem", authorities) };
}
