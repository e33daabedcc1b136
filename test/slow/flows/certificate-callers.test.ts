/** Routes with `auth: certificate`: the client certificate of the connection is the caller. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Agent, type RequestOptions, request as send } from "node:https";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ask } from "../../support/ask.ts";
import { clientAuthority } from "../../support/client-certificates.ts";
import { editConfiguration, replaceFile } from "../../support/edits.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { logLine } from "../../support/log-line.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { startWebSocketBackend } from "../../support/websocket.ts";
import { until } from "../../support/until.ts";

const authority = await clientAuthority();
const other = await clientAuthority("Another authority");
/** With the name of the first: only the signatures tell them apart. */
const namesake = await clientAuthority();
const between = await authority.subordinate("Between");
const WEB = "spiffe://cluster.local/ns/shop/sa/web";
const web = await authority.certificate({ altNames: [`URI:${WEB}`, "DNS:web.shop", "DNS:web"] });
const alice = await authority.certificate();
const below = await between.certificate({ altNames: [`URI:${WEB}`] });
const clientCertificates = { mode: "optional", caFile: "clients.crt" };
const route = (name: string, more: object = {}) => ({
  name,
  path: `/${name}`,
  auth: "certificate",
  upstream: "app",
  ...more,
});
const routes = [
  route("any"),
  route("exact", { require: { spiffe: [WEB] } }),
  route("below", { require: { spiffe: ["spiffe://cluster.local/ns/shop/*"] } }),
  route("domain", { require: { spiffe: ["spiffe://cluster.local/*"] } }),
  route("others", { require: { spiffe: ["spiffe://cluster.local/ns/sho/*", `${WEB}/*`] } }),
  route("named", { require: { claims: [{ claim: "dns_names", any: ["web.shop"] }] } }),
  route("alice", {
    require: { claims: [{ claim: "sub", equals: "CN=alice,OU=sales,O=Example" }] },
  }),
  route("limited", { rateLimit: { requests: 1, within: "60s" } }),
  { name: "token", path: "/token", upstream: "app" },
  { name: "public", path: "/public", auth: "none", upstream: "app" },
];
const configured = (more: object = {}) => ({
  config: { server: { http2: true, tls: { clientCertificates } }, routes, ...more },
  files: { "clients.crt": authority.cert },
});

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly body: string;
}

async function over(
  { port, ca }: Pick<Sallyport, "port" | "ca">,
  path: string,
  { body, ...options }: RequestOptions & { body?: string } = {},
): Promise<Answer> {
  const where = { host: "127.0.0.1", servername: "localhost", port, path, ca };
  const outgoing = send({ ...where, ...options }).end(body);
  const [incoming] = await once(outgoing, "response");
  return { status: incoming.statusCode, headers: incoming.headers, body: await text(incoming) };
}

/** The headers that the backend got, names in lower case. */
function echoed({ body }: Answer): Record<string, string> {
  const { rawHeaders }: { rawHeaders: string[] } = JSON.parse(body);
  return Object.fromEntries(
    rawHeaders.flatMap((name, at) =>
      at % 2 === 0 ? [[name.toLowerCase(), rawHeaders[at + 1] ?? ""]] : [],
    ),
  );
}

describe("a caller by certificate", () => {
  let backend: EchoBackend;
  let gate: Sallyport;
  beforeAll(async () => {
    backend = await startEchoBackend();
    gate = await startSallyport({ target: backend.url, ...configured() });
  });
  afterAll(async () => {
    await gate.close();
    await backend.close();
  });

  it("is its SPIFFE ID, and the backend learns the names of the certificate", async () => {
    const answer = await over(gate, "/any", web);
    expect(answer.status).toBe(200);
    expect(answer.headers["cache-control"]).toBe("private");
    expect(echoed(answer)).toMatchObject({
      "x-auth-subject": WEB,
      "x-auth-issuer": "certificate",
      "x-auth-groups": "",
      "x-auth-client-spiffe-id": WEB,
      "x-auth-client-dns-names": "web.shop,web",
      "x-auth-client-subject": "CN=alice,OU=sales,O=Example",
    });
    const line = await logLine(gate, { path: "/any" });
    expect(line).toMatchObject({ subject: WEB, auth: "allowed", route: "any" });
  });

  it("is the subject of a certificate without SPIFFE ID", async () => {
    const headers = echoed(await over(gate, "/any", alice));
    expect(headers["x-auth-subject"]).toBe("CN=alice,OU=sales,O=Example");
    expect(headers).not.toHaveProperty("x-auth-client-spiffe-id");
    expect(headers).not.toHaveProperty("x-auth-client-dns-names");
  });

  it.each([
    ["exact", 200, 403],
    ["below", 200, 403],
    ["domain", 200, 403],
    ["others", 403, 403],
    ["named", 200, 403],
    ["alice", 403, 200],
  ])("is compared with what the route /%s requires", async (name, forWeb, forAlice) => {
    const refused = await over(gate, `/${name}`, alice);
    expect([(await over(gate, `/${name}`, web)).status, refused.status]).toEqual([
      ...[forWeb, forAlice],
    ]);
    expect(refused.headers).not.toHaveProperty("www-authenticate");
  });

  it("is known over HTTP/2, too", async () => {
    const session = connectHttp2(`https://localhost:${gate.port}`, { ca: gate.ca, ...web });
    const stream = session.request({ ":path": "/exact" });
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(200);
    session.destroy();
  });

  it("cannot be replaced by a token, which belongs to the application here", async () => {
    const authorization = `Bearer ${gate.token}`;
    const without = await over(gate, "/any", { headers: { authorization } });
    expect(without.status).toBe(401);
    expect(without.headers["www-authenticate"]).toBe('ClientCertificate realm="sallyport"');
    const answer = await over(gate, "/any", { ...web, headers: { authorization: "Basic YTpi" } });
    expect(echoed(answer)).toMatchObject({ authorization: "Basic YTpi", "x-auth-subject": WEB });
    expect((await over(gate, "/token", web)).status).toBe(401);
    const line = await logLine(gate, { path: "/any", status: 401 });
    expect(line).toMatchObject({ auth: "denied", reason: "missing" });
  });

  it("is limited by itself", async () => {
    expect((await over(gate, "/limited", web)).status).toBe(200);
    expect((await over(gate, "/limited", web)).status).toBe(429);
    expect((await over(gate, "/limited", alice)).status).toBe(200);
  });

  it("cannot be used by pages of other sites through a browser", async () => {
    const from = (headers: Record<string, string>, method = "POST") =>
      over(gate, "/any", { ...web, agent: false, method, headers });
    expect((await from({ origin: "https://evil.example" })).status).toBe(403);
    expect((await from({ "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await from({})).status).toBe(200);
    expect((await from({ origin: "https://evil.example" }, "GET")).status).toBe(200);
    expect((await from({ "sec-fetch-site": "same-origin" })).status).toBe(200);
  });

  it("names the client on other routes, too, and clients cannot name themselves", async () => {
    const headers = {
      "X-Auth-Client-Spiffe-Id": "spiffe://a/root",
      "x-auth-client-dns-names": "root",
      "X-Auth-Client-Spiffe_Id": "spiffe://a/root",
      X_Auth_Client_Dns_Names: "root",
    };
    const known = echoed(await over(gate, "/public", { ...web, headers }));
    expect(known["x-auth-client-spiffe-id"]).toBe(WEB);
    const unknown = await over(gate, "/public", { headers });
    expect(unknown.body).not.toContain("root");
  });

  it("is ended by a revocation of its subject", async () => {
    const bob = await authority.certificate({
      subject: [{ shortName: "CN", value: "bob" }],
    });
    expect((await over(gate, "/any", bob)).status).toBe(200);
    const { status } = await ask({ port: gate.adminPort }, "/-/revoke?subject=CN%3Dbob", {
      method: "POST",
    });
    expect(status).toBe(200);
    await until(async () => (await over(gate, "/any", bob)).status === 401);
    const later = await authority.certificate({
      subject: [{ shortName: "CN", value: "bob" }],
      days: [2 / 86_400, 1],
    });
    await until(
      async () => (await over(gate, "/any", later).catch(() => ({ status: 0 }))).status === 200,
    );
  });

  it("is explained: a dry run has none", async () => {
    const { body } = await ask({ port: gate.adminPort }, "/-/explain?url=/any");
    const found = JSON.parse(body);
    expect(found.verdict).toMatchObject({ outcome: "refused", status: 401, reason: "missing" });
    expect(found.notes.join()).toContain("a dry run has no client certificate");
  });
});

describe("the end of a certificate", () => {
  it("ends requests on the connection and what runs on it", async () => {
    await using sockets = await startWebSocketBackend();
    await using gate = await startSallyport({ target: sockets.url, ...configured() });
    const brief = await authority.certificate({ days: [-1, 4 / 86_400] });
    const { port, ca } = gate;
    const options = { ca: ca ?? "", servername: "localhost", ...brief };
    const open = new WebSocket(`wss://127.0.0.1:${port}/any`, options);
    await once(open, "open");
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const first = await over(gate, "/any", { agent, ...brief });
    expect(first.status).not.toBe(401);
    const [code] = await once(open, "close");
    expect(code).toBe(1008);
    const late = await over(gate, "/any", { agent, ...brief });
    expect([late.status, late.headers["connection"]]).toEqual([401, "close"]);
    expect(late.headers["www-authenticate"]).toBe('ClientCertificate realm="sallyport"');
    agent.destroy();
    const counted = 'sallyport_auth_decisions_total{result="denied",reason="expired"}';
    expect((await scrape(gate)).value(counted)).toBe(1);
  }, 20_000);
});

describe("authorities that a reload takes away", () => {
  it("no longer vouch for open connections, and those that stay do", async () => {
    await using sockets = await startWebSocketBackend();
    await using gate = await startSallyport({
      target: sockets.url,
      ...configured(),
      files: { "clients.crt": `${authority.cert}\n${other.cert}` },
    });
    const { port, ca } = gate;
    const staying = await other.certificate();
    const further = await other.subordinate("Further");
    const stayingBelow = await further.certificate();
    const certificates = {
      web,
      below: { key: below.key, cert: `${below.cert}\n${between.cert}` },
      stayingBelow: { key: stayingBelow.key, cert: `${stayingBelow.cert}\n${further.cert}` },
      staying,
    };
    const connections = await Promise.all(
      Object.entries(certificates).map(async ([name, certificate]) => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        const session = connectHttp2(`https://localhost:${port}`, { ca, ...certificate });
        session.on("error", () => undefined);
        const options = { ca, servername: "localhost", ...certificate };
        const socket = new WebSocket(`wss://127.0.0.1:${port}/any`, options);
        await once(socket, "open");
        const closed = once(socket, "close");
        const http1 = (path: string) => over(gate, path, { agent, ...certificate });
        const http2 = async (path: string): Promise<number> => {
          const stream = session.request({ ":path": path });
          const [headers] = await once(stream, "response");
          stream.resume();
          return headers[":status"];
        };
        return { name, http1, http2, socket, closed, agent, session };
      }),
    );
    const statuses = (path: string) =>
      Promise.all(
        connections.map(async ({ http1, http2 }) => [
          (await http1(path)).status,
          await http2(path),
        ]),
      );
    const before = await statuses("/public");
    expect(before.flat()).not.toContain(401);
    expect((await statuses("/any")).flat()).not.toContain(401);
    await replaceFile(gate, "clients.crt", `${namesake.cert}\n${other.cert}`);
    const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect(status).toBe(200);
    for (const { name, socket, closed, http1, http2, agent, session } of connections) {
      if (name.startsWith("staying")) {
        expect(socket.readyState).toBe(WebSocket.OPEN);
        expect((await http1("/any")).status).not.toBe(401);
        expect(await http2("/any")).not.toBe(401);
        socket.close();
      } else {
        const [code] = await closed;
        expect([name, code]).toEqual([name, 1008]);
        const answer = await http1("/public");
        expect([answer.status, answer.headers["connection"]]).toEqual([401, "close"]);
        const gone = once(session, "goaway");
        expect(await http2("/public")).toBe(401);
        await gone;
      }
      agent.destroy();
      session.destroy();
    }
    const counted = 'sallyport_auth_decisions_total{result="denied",reason="unknown_key"}';
    expect((await scrape(gate)).value(counted)).toBeGreaterThanOrEqual(4);
  }, 30_000);

  it("nor do other proxies go on to ask on them", async () => {
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({
      target: backend.url,
      ...configured({ decisions: { from: ["127.0.0.0/8"] } }),
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const session = connectHttp2(`https://localhost:${gate.port}`, { ca: gate.ca, ...web });
    const headers = {
      "x-original-uri": "/public",
      "x-original-method": "GET",
      "x-forwarded-for": "192.0.2.1",
    };
    const question = async () => {
      const { status } = await over(gate, "/_sallyport/decide", { agent, ...web, headers });
      const [answer] = await once(
        session.request({ ":path": "/_sallyport/decide", ...headers }).resume(),
        "response",
      );
      return [status, answer[":status"]];
    };
    expect(await question()).toEqual([200, 200]);
    await replaceFile(gate, "clients.crt", other.cert);
    await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect(await question()).toEqual([401, 401]);
    agent.destroy();
    session.destroy();
  });

  it("and one that does not say that it is an authority stays one", async () => {
    const old = await clientAuthority("Old", [-1, 365], false);
    const certificate = await old.certificate();
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({
      target: backend.url,
      ...configured(),
      files: { "clients.crt": old.cert },
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await over(gate, "/any", { agent, ...certificate })).status).toBe(200);
    await replaceFile(gate, "clients.crt", `${old.cert}\n${other.cert}`);
    await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect((await over(gate, "/any", { agent, ...certificate })).status).toBe(200);
    expect((await over(gate, "/any", { agent: false, ...certificate })).status).toBe(200);
    agent.destroy();
  });

  it("and an unrelated reload leaves the connections in peace", async () => {
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({ target: backend.url, ...configured() });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await over(gate, "/any", { agent, ...web })).status).toBe(200);
    await editConfiguration(gate, (config) => void (config["log"] = { level: "debug" }));
    await replaceFile(gate, "clients.crt", `${other.cert}\n${authority.cert}`);
    await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect((await over(gate, "/any", { agent, ...web })).status).toBe(200);
    agent.destroy();
  });
});

describe("a configuration", () => {
  const problemsOf = (config: object): Promise<string> =>
    startSallyport({
      target: "http://127.0.0.1:1",
      config: { server: { tls: { clientCertificates } }, routes, ...config },
      files: { "clients.crt": authority.cert },
    }).then(
      async (started) => {
        await started.close();
        return "";
      },
      (error: Error) => error.message,
    );
  const only = (more: object) => ({ routes: [{ ...route("any"), ...more }] });

  it.each([
    ["needs server.tls.clientCertificates", { server: {} }],
    ["tokenFrom has no effect", only({ tokenFrom: [{ cookie: "a" }] })],
    ["forwardAuthorization has no effect", only({ forwardAuthorization: "strip" })],
    ["require.groups never holds", only({ require: { groups: { any: ["a"] } } })],
    ["require.issuers never holds", only({ require: { issuers: ["sallyport"] } })],
    ["must be a SPIFFE ID", only({ require: { spiffe: ["spiffe://a/*/b"] } })],
    ["must be a SPIFFE ID", only({ require: { spiffe: ["spiffe://a"] } })],
    ["must be a SPIFFE ID", only({ require: { spiffe: ["spiffe://*/a"] } })],
    ["needs auth: certificate", only({ auth: "required", require: { spiffe: [WEB] } })],
    ["is the issuer of client certificates", { tokens: { issuer: "certificate" } }],
  ])("says: %s", async (message, config) => {
    expect(await problemsOf(config)).toContain(message);
  });
});
