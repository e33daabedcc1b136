/**
 * Advisories of 2025 and 2026 about the servers behind a proxy, and those that it asks: the class numbers are those of
 * the table in SECURITY.md.
 *
 * - 25: bytes that come in clear text, before the TLS handshake, are taken as the answer (nginx).
 * - 27: a certificate for another name fits an odd spelling of an address (Node, Envoy).
 * - 32: the caller's token, or a credential of the proxy's own, goes to a backend that should not see it (Traefik,
 *   TSDProxy).
 * - 38: an answer about a token or a user is decompressed or parsed without a bound (Envoy, Envoy Gateway, Node).
 * - 42: an answer for one caller is kept, and validated or given out for another; a redirect is followed (undici).
 */
import { createSecureContext, TLSSocket } from "node:tls";
import { createServer as createTcpServer } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, it } from "vitest";
import { ask, askLogin } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { byKey, compact } from "../support/compact-token.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { valuesOf } from "../support/http-reader.ts";
import { listening } from "../support/listening.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { claims, header, OWN, seconds, useTokenGate } from "../support/token-gate.ts";
import { until } from "../support/until.ts";
import { acceptingUpgrades, waysInto } from "../support/ways.ts";

const { ca, server: pair, other } = await testCertificates();
const token = (more: Readonly<Record<string, unknown>> = {}): string =>
  compact(header(), claims(more), byKey(OWN.privateKey));

/** Says yes in clear text, and then continues with TLS. */
const clearText = await listening(
  createTcpServer((socket) => {
    socket.on("error", () => undefined);
    const forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    socket.write(forged);
    const secured = new TLSSocket(socket, {
      isServer: true,
      secureContext: createSecureContext(pair),
      ALPNProtocols: ["h2", "http/1.1"],
    });
    secured.on("error", () => socket.destroy()).on("data", () => secured.write(forged));
  }),
);

/** Answers over TLS as the name or the address that its certificate names. */
async function secure(keys: typeof pair) {
  const { createServer: createSecureServer } = await import("node:https");
  return listening(createSecureServer(keys, (_request, response) => response.end("ok")));
}
const rightName = await secure(pair);
const otherName = await secure(other);
/** Spellings of an address; those of digits only, such as 127.1, are refused at start. */
const SPELLINGS = ["127.0.0.1", "0x7f.1", "0x7F000001", "[::ffff:127.0.0.1]"];

/** A yes to every question, behind what a client of ours must not undo. */
const YES = {
  active: true,
  sub: "admin",
  aud: "orders",
  subject: "admin",
  groups: ["admin"],
  keys: [OWN.jwk],
  status: { authenticated: true, allowed: true, user: { username: "admin" } },
};
const PADDED = JSON.stringify({ ...YES, pad: "x".repeat(10_000_000) });
const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const withMember = (member: string): string => JSON.stringify(YES).replace("{", `{"x":${member},`);
const BOMBS: Readonly<Record<string, { body: string | Buffer; coding?: string }>> = {
  gzip: { body: gzipSync(PADDED), coding: "gzip" },
  deflate: { body: deflateSync(PADDED), coding: "deflate" },
  brotli: { body: brotliCompressSync(PADDED), coding: "br" },
  small: { body: gzipSync(JSON.stringify(YES)), coding: "gzip" },
  nested: { body: nested(30_000) },
  inside: { body: withMember(nested(15_000)) },
  members: { body: withMember(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`) },
  large: { body: PADDED },
  redirect: { body: "" },
};
const NAMES = Object.keys(BOMBS);
const askedWith: IncomingMessage["headers"][] = [];
let followed = 0;
const evil = await listening(
  createServer((request, response) => {
    void text(request).then((body) => {
      askedWith.push(request.headers);
      if (request.url === "/yes") followed += 1;
      const named = NAMES.find((name) => `${request.url} ${body}`.includes(`bomb-${name}`)) ?? "";
      const bomb = BOMBS[named] ?? { body: JSON.stringify(YES) };
      if (named === "redirect") response.writeHead(307, { location: "/yes" });
      if (bomb.coding !== undefined) response.setHeader("content-encoding", bomb.coding);
      response.end(bomb.body);
    });
  }),
);
afterAll(async () => {
  for (const each of [clearText, rightName, otherName, evil]) await each[Symbol.asyncDispose]();
});
const checked = await Promise.all([startRawBackend(), startRawBackend()]);
afterAll(() => Promise.all(checked.map((each) => each.close())));

const tls = { caFile: "ca.crt" };
const at = (port: number, host = "127.0.0.1") => ({ targets: [`https://${host}:${port}`], tls });
const route = (name: string, more: object = {}) => ({
  name,
  path: `/${name}`,
  upstream: name,
  ...more,
});
const PROTOCOLS = { clear1: {}, clear2: { protocol: "http2" }, clearauto: { protocol: "auto" } };
const remote = { timeout: "2s", cache: "0s" };
const spelled = SPELLINGS.flatMap((host, n) => [
  [`right${n}`, at(rightName.port, host)] as const,
  [`other${n}`, at(otherName.port, host)] as const,
]);
const jwks = NAMES.map((name) => ({
  issuer: `https://bomb-${name}`,
  audience: "orders",
  algorithms: ["ES256"],
  jwks: { url: `${evil.url}/bomb-${name}` },
}));
const discovered = NAMES.map((name) => ({
  issuer: `${evil.url}/bomb-${name}`,
  audience: "orders",
  algorithms: ["ES256"],
  discovery: true,
}));

const standing = useTokenGate({
  files: { "ca.crt": ca },
  config: {
    server: { http2: true, tls: "off" },
    users: [{ kind: "http", url: evil.url, timeout: "2s" }],
    tokens: {
      trusted: [
        ...[...jwks, ...discovered],
        {
          issuer: "opaque",
          introspection: { url: evil.url, clientId: "a", clientSecret: "b", ...remote },
        },
        {
          issuer: "cluster",
          tokenReview: { apiServer: evil.url, audiences: ["orders"], ...remote },
        },
      ],
    },
    authorization: {
      rbac: {
        kind: "subjectAccessReview",
        apiServer: evil.url,
        issuers: ["sallyport"],
        ...remote,
      },
      policy: { kind: "http", url: evil.url, ...remote },
    },
    version: { upstream: "checked", path: "/about", field: "version" },
    upstreams: {
      ...Object.fromEntries(
        Object.entries(PROTOCOLS).map(([name, more]) => [name, { ...at(clearText.port), ...more }]),
      ),
      ...Object.fromEntries(spelled),
      checked: {
        targets: checked.map(({ url }) => url),
        health: { path: "/healthy", interval: "100ms" },
      },
    },
    routes: [
      ...Object.keys(PROTOCOLS).map((name) => route(name)),
      ...spelled.map(([name]) => route(name)),
      route("rbac", { upstream: "app", authorize: "rbac" }),
      route("policy", { upstream: "app", authorize: "policy" }),
      route("checked"),
      route("rest", { path: "/", upstream: "app" }),
    ],
  },
});
const ways = waysInto(() => standing().gate);
const WAYS = Object.entries(ways);
const statusOf = async (path: string, sent = token()): Promise<number> =>
  (await ask(standing().gate, path, { token: sent })).status;

describe("25: bytes before the TLS handshake", () => {
  it.each(Object.keys(PROTOCOLS))("are no answer of the upstream %s", async (name) => {
    for (const [, send] of WAYS) {
      const fields = { Authorization: `Bearer ${token()}` };
      expect(await send({ path: `/${name}`, fields })).toBe(502);
    }
    const { body } = await ask(standing().gate, `/${name}`, { token: token() });
    expect(body).not.toContain("forged");
  });
});

describe("27: a certificate", () => {
  it.each(SPELLINGS.map((host, n) => [host, n] as const))(
    "for another name does not fit an address that is written %s",
    async (host, n) => {
      expect(await statusOf(`/other${n}`)).toBe(502);
      // The mapped spelling is another address than the one in the certificate.
      expect(await statusOf(`/right${n}`)).toBe(host.startsWith("[") ? 502 : 200);
    },
  );
});

describe("32: what Sallyport asks on its own", () => {
  it("carries no token, cookie or field of a caller: health checks and the version", async () => {
    const { gate } = standing();
    const secret = token();
    const headers = { cookie: `a=${secret}`, "x-secret": secret };
    expect((await ask(gate, "/checked", { token: secret, headers })).status).toBe(200);
    await ask(gate, "/api/version", { token: secret, headers });
    const seen = () => checked.flatMap((each) => each.requests());
    const asked = (path: string) =>
      seen().filter(({ startLine }) => startLine === `GET ${path} HTTP/1.1`);
    await until(() => asked("/healthy").length >= 4 && asked("/about").length > 0);
    for (const { headers: sent } of [...asked("/healthy"), ...asked("/about")]) {
      expect(JSON.stringify(sent)).not.toContain(secret);
      for (const name of ["authorization", "cookie", "x-secret", "x-auth-subject", "forwarded"]) {
        expect(valuesOf(sent, name)).toEqual([]);
      }
    }
  });
});

describe("38, 44: an answer that is more than it seems", () => {
  it.each(NAMES)("is no yes, and costs little: %s", async (name) => {
    const { gate } = standing();
    const began = performance.now();
    const mine = { aud: "orders", sub: `bomb-${name}` };
    // Of our own key, whose public part is in the key sets.
    expect(await statusOf("/x", token({ ...mine, iss: `https://bomb-${name}` }))).toBe(503);
    expect(await statusOf("/x", token({ ...mine, iss: `${evil.url}/bomb-${name}` }))).toBe(503);
    expect(await statusOf("/x", `bomb-${name}`)).toBe(503);
    expect(await statusOf(`/rbac/bomb-${name}`)).toBe(503);
    // Only the status counts.
    const answers = name === "large" || name === "redirect" ? 503 : 200;
    expect(await statusOf(`/policy/bomb-${name}`)).toBe(answers);
    const login = { username: `bomb-${name}`, password: "x" };
    expect((await askLogin(gate, login)).status).toBe(503);
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(await statusOf("/x")).toBe(200);
  });

  it("nothing asked for a coding, and no redirect was followed", async () => {
    expect(askedWith.length).toBeGreaterThan(5 * NAMES.length);
    expect(askedWith.filter((sent) => sent["accept-encoding"] !== undefined)).toEqual([]);
    expect(followed).toBe(0);
    // The same answers without a bomb are a yes.
    expect(await statusOf("/x", "opaque")).toBe(200);
    expect((await askLogin(standing().gate, { username: "a", password: "x" })).status).toBe(200);
  });
});

describe("42: an answer for one caller", () => {
  it("is never kept for another, nor a condition answered or a redirect followed", async () => {
    const { gate, backend } = standing();
    const cached =
      'Cache-Control: public, max-age=3600\r\nETag: "1"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT';
    backend.answerWith(({ startLine, headers }, connection) => {
      if (startLine.startsWith("GET /moved")) {
        return { write: "HTTP/1.1 301 Moved\r\nLocation: /private\r\nContent-Length: 0\r\n\r\n" };
      }
      const [subject = ""] = valuesOf(headers, "x-auth-subject");
      if (valuesOf(headers, "sec-websocket-key").length > 0)
        return acceptingUpgrades(
          { startLine, headers, body: Buffer.alloc(0), trailers: [] },
          connection,
        );
      return {
        write: `HTTP/1.1 200 OK\r\n${cached}\r\nContent-Length: ${subject.length}\r\n\r\n${subject}`,
      };
    });
    await using client = await connectHttp2(gate);
    const conditions = {
      "if-none-match": '"1"',
      "if-modified-since": new Date(seconds() * 1000).toUTCString(),
    };
    for (const sub of ["alice", "bob", "carol"]) {
      const authorization = `Bearer ${token({ sub })}`;
      const one = await ask(gate, "/private", { headers: { authorization, ...conditions } });
      const two = await client.ask({ ":path": "/private", authorization, ...conditions });
      expect([one.status, one.body, two.status, two.body]).toEqual([200, sub, 200, sub]);
      const moved = await ask(gate, "/moved", { headers: { authorization } });
      expect([moved.status, moved.headers.location]).toEqual([301, "/private"]);
    }
    expect(backend.seen()).toHaveLength(9);
    const sent = backend.requests().filter(({ startLine }) => startLine.startsWith("GET /private"));
    expect(sent.map(({ headers }) => valuesOf(headers, "if-none-match"))).toEqual(
      sent.map(() => ['"1"']),
    );
  });
});
