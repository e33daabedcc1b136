/**
 * The attack: bytes in clear text, before TLS begins, count as if they had come through TLS. Somebody in the middle who
 * has no certificate appends the beginning of a message to the last answer in clear text; a reader that keeps it joins it
 * with the first bytes of TLS ("NO STARTTLS", USENIX Security 2021; CVE-2011-0411; CVE-2021-23222 in PostgreSQL's libpq).
 * A backend answers in clear text before the handshake (CVE-2026-1642 in nginx). A client smuggles a request in front of
 * its handshake.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import {
  ber,
  berText,
  foundEntry,
  ldapResult,
  messageId,
  readRequest,
} from "../support/ldap-messages.ts";
import { listeningPort } from "../support/listening-port.ts";
import { exchange, request } from "../support/raw-client.ts";
import { type RawBackend, startRawBackend } from "../support/raw-backend.ts";
import { cheapHash, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { openWebSocket, UpgradeRefused } from "../support/websocket.ts";

const RIGHT = "the right password";
const WRONG = "any wrong password";

interface RawServer extends AsyncDisposable {
  readonly port: number;
}

/** Starts a server for raw connections. */
async function rawServer(serve: (socket: Socket) => void): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    serve(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: listeningPort(server),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Continues a connection in TLS, as the server. */
async function secured(
  socket: Socket,
  serve: (bytes: Buffer, secure: TLSSocket) => void,
): Promise<void> {
  const { server: pair } = await testCertificates();
  const secure = new TLSSocket(socket, { isServer: true, ...pair });
  secure.on("error", () => socket.destroy());
  secure.on("data", (bytes: Buffer) => serve(bytes, secure));
}

/** What the attacker makes of the first answer in clear text. */
type Injection = (answer: Buffer, client: Socket) => void;
const honest: Injection = (answer, client) => void client.write(answer);
const appended =
  (...bytes: readonly Buffer[]): Injection =>
  (answer, client) =>
    void client.write(Buffer.concat([answer, ...bytes]));
/** In segments of their own, which follow as soon as the client has taken the first one. */
const following =
  (bytes: Buffer): Injection =>
  (answer, client) =>
    void client.write(answer, () => setImmediate(() => client.write(bytes)));

interface Attacker extends RawServer {
  /** Closes all connections. From the given number on, new ones are treated as the injection says. */
  attack(injection: Injection, from?: number): void;
}

/** Relays all bytes, and treats the first answer on each connection as the injection says. */
async function startAttacker(target: number): Promise<Attacker> {
  let injection = honest;
  let honestOnes = 0;
  const clients = new Set<Socket>();
  const server = await rawServer((client) => {
    clients.add(client);
    const inject = honestOnes > 0 ? honest : injection;
    honestOnes -= 1;
    const directory = connect(target, "127.0.0.1");
    client.on("data", (bytes: Buffer) => directory.write(bytes));
    directory.once("data", (answer: Buffer) => {
      inject(answer, client);
      directory.on("data", (bytes: Buffer) => client.write(bytes));
    });
    directory.on("error", () => client.destroy()).on("close", () => client.destroy());
    client.on("close", () => directory.destroy());
  });
  return Object.assign(server, {
    attack(next: Injection, from = 1): void {
      for (const client of clients) client.destroy();
      clients.clear();
      injection = next;
      honestOnes = from - 1;
    },
  });
}

let addresses = 0;
/** Logs in from an address of its own, so that the throttle does not interfere. */
async function logIn(gate: Sallyport, username: string, password: string): Promise<number> {
  addresses += 1;
  const { status } = await ask(gate, "/api/authenticate", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-forwarded-for": `198.51.100.${addresses}`,
    },
    body: JSON.stringify({ username, password }),
  });
  return status;
}

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

async function gateWith(users: object): Promise<Sallyport> {
  const { ca } = await testCertificates();
  return stack.use(
    await startSallyport({
      withoutToken: true,
      target: "http://127.0.0.1:9",
      config: {
        server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
        users: [{ ...users, caFile: "ca.crt", timeout: "2s", connections: 2 }],
      },
      files: { "ca.crt": ca },
    }),
  );
}

describe("LDAP with StartTLS (RFC 4511 §4.14)", () => {
  /** A directory with one user, alice. */
  const startDirectory = (): Promise<RawServer> =>
    rawServer((socket) => {
      socket.once("data", (bytes: Buffer) => {
        const { id } = readRequest(bytes);
        socket.write(ber(0x30, messageId(id), ldapResult(0x78, 0)));
        void secured(socket, (message, secure) => {
          const request = readRequest(message);
          secure.write(answerTo(request.id, request.operation, message));
        });
      });
    });
  const refusal = (id: number): Buffer => ber(0x30, messageId(id), ldapResult(0x61, 49));
  function answerTo(id: number, operation: number, message: Buffer): Buffer {
    if (operation === 0x63) return foundEntry(id, "alice");
    return message.includes(RIGHT) ? ber(0x30, messageId(id), ldapResult(0x61, 0)) : refusal(id);
  }

  const success = (id: number): Buffer => ber(0x30, messageId(id), ldapResult(0x61, 0));
  /** The beginning of a success whose diagnosticMessage will be the refusal that comes through TLS. */
  function unfinished(id: number): Buffer {
    const whole = ber(
      0x30,
      messageId(id),
      ber(0x61, ber(0x0a, Buffer.from([0])), berText(0x04, ""), ber(0x04, refusal(id))),
    );
    return whole.subarray(0, -refusal(id).length);
  }

  let gate: Sallyport;
  let attacker: Attacker;
  beforeAll(async () => {
    const directory = stack.use(await startDirectory());
    attacker = stack.use(await startAttacker(directory.port));
    gate = await gateWith({
      kind: "ldap",
      url: `ldap://127.0.0.1:${attacker.port}`,
      startTls: true,
      search: { base: "dc=example", filter: "(uid={username})" },
    });
  });

  it.each([
    ["the beginning of a success for the next message", appended(unfinished(3))],
    ["the beginning of a success for the first message", appended(unfinished(2))],
    ["a success for the next message", appended(success(3))],
    ["a success for the first message", appended(success(2))],
    ["a single byte", appended(Buffer.from([0x30]))],
    ["the beginning of a success in a segment of its own", following(unfinished(3))],
    ["a success in a segment of its own", following(success(3))],
    [
      "a success in front of the answer",
      (answer: Buffer, client: Socket) => void client.write(Buffer.concat([success(3), answer])),
    ],
  ] satisfies [string, Injection][])("%s logs nobody in", async (_what, attack) => {
    // The first connection searches, the second one binds as the user.
    for (const from of [1, 2]) {
      attacker.attack(attack, from);
      expect(await logIn(gate, "alice", WRONG)).toBe(503);
    }
  });

  it("an honest relay changes nothing", async () => {
    attacker.attack(honest);
    expect(await logIn(gate, "alice", WRONG)).toBe(401);
    expect(await logIn(gate, "alice", RIGHT)).toBe(200);
  });
});

describe("PostgreSQL with SSLRequest", () => {
  const message = (letter: string, ...content: readonly (string | Buffer)[]): Buffer => {
    const inside = Buffer.concat(content.map((each) => Buffer.from(each)));
    return Buffer.concat([Buffer.from(letter), number(4 + inside.length), inside]);
  };
  const number = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(value);
    return bytes;
  };
  const short = (value: number): Buffer => number(value).subarray(2);
  const READY = message("Z", "I");
  const LET_IN = Buffer.concat([message("R", number(0)), READY]);
  /** The answer to the query: one row with the hash of a password. */
  function rowWith(password: string): Buffer {
    const hash = cheapHash(password);
    const column = ["password_hash\0", number(0), short(0), number(25), short(-1), number(-1)];
    return Buffer.concat([
      ...[message("1"), message("2"), message("T", short(1), ...column, short(0))],
      message("D", short(1), number(hash.length), hash),
      ...[message("C", "SELECT 1\0"), READY],
    ]);
  }
  const ROW = rowWith(RIGHT);
  /** Accepts TLS, and has one user with the right password. */
  const startDatabase = (): Promise<RawServer> =>
    rawServer((socket) => {
      socket.once("data", () => {
        socket.write("S");
        void secured(socket, (bytes, secure) => {
          secure.write(bytes.includes("SELECT") ? ROW : LET_IN);
        });
      });
    });

  let gate: Sallyport;
  let attacker: Attacker;
  beforeAll(async () => {
    const database = stack.use(await startDatabase());
    attacker = stack.use(await startAttacker(database.port));
    gate = await gateWith({
      kind: "postgres",
      url: `postgres://sallyport:secret-1@127.0.0.1:${attacker.port}/a`,
      query: "SELECT password_hash FROM users WHERE name = $1",
    });
  });

  it.each([
    ["an authentication", appended(LET_IN)],
    ["an authentication and a row", appended(LET_IN, rowWith(WRONG))],
    ["the beginning of a message", appended(Buffer.from("D\0"))],
    ["an authentication in a segment of its own", following(LET_IN)],
  ] satisfies [string, Injection][])("%s after the S logs nobody in", async (_what, attack) => {
    attacker.attack(attack);
    expect(await logIn(gate, "alice", WRONG)).toBe(503);
  });

  it("an honest relay changes nothing", async () => {
    attacker.attack(honest);
    expect(await logIn(gate, "alice", WRONG)).toBe(401);
    expect(await logIn(gate, "alice", RIGHT)).toBe(200);
  });
});

describe("a server that answers in clear text where TLS was expected", () => {
  const ANSWER = request(["HTTP/1.1 200 OK", "Content-Length: 6"], "forged");
  /** The preface of an HTTP/2 server: empty SETTINGS. */
  const SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  /** When the answer in clear text comes: before the ClientHello, or after it and followed by TLS. */
  const early = (bytes: string | Buffer) => rawServer((socket) => void socket.write(bytes));
  const late = (bytes: string | Buffer) =>
    rawServer((socket) => {
      socket.once("data", (hello: Buffer) => {
        socket.unshift(hello);
        socket.write(bytes, () => {
          void secured(socket, (_bytes, secure) => void secure.write(ANSWER));
        });
      });
    });

  let gate: Sallyport;
  let forger: RawServer;
  beforeAll(async () => {
    const { ca } = await testCertificates();
    const [atOnce, then, h2] = [
      stack.use(await early(ANSWER)),
      stack.use(await late(ANSWER)),
      stack.use(await early(SETTINGS)),
    ];
    forger = stack.use(
      await early(
        request(["HTTP/1.1 200 OK", "Content-Type: application/json", "Content-Length: 2"], "{}"),
      ),
    );
    const upstream = (server: RawServer, more: object = {}) => ({
      targets: [`https://127.0.0.1:${server.port}`],
      tls: { caFile: "ca.crt" },
      ...more,
    });
    const route = (name: string) => ({ name, path: `/${name}`, upstream: name, auth: "none" });
    const names = ["early", "late", "h2", "auto"];
    gate = stack.use(
      await startSallyport({
        withoutToken: true,
        target: "http://127.0.0.1:9",
        files: { "ca.crt": ca },
        config: {
          server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
          users: [{ kind: "http", url: `https://127.0.0.1:${forger.port}`, caFile: "ca.crt" }],
          tokens: {
            trusted: [
              {
                issuer: "opaque",
                introspection: {
                  url: `https://127.0.0.1:${forger.port}`,
                  caFile: "ca.crt",
                  clientId: "a",
                  clientSecret: "of-the-test",
                },
              },
            ],
          },
          upstreams: {
            early: upstream(atOnce),
            late: upstream(then),
            h2: upstream(h2, { protocol: "http2" }),
            auto: upstream(h2, { protocol: "auto" }),
          },
          routes: [...names.map(route), { name: "rest", path: "/", upstream: "early" }],
        },
      }),
    );
  });

  it.each(["early", "late", "h2", "auto"])("is not believed as a backend: %s", async (name) => {
    const { status, body } = await ask(gate, `/${name}`);
    expect(status).toBe(502);
    expect(body).not.toContain("forged");
  });

  it.each(["early", "late"])("opens no WebSocket: %s", async (name) => {
    await expect(openWebSocket(gate, `/${name}`)).rejects.toThrow(UpgradeRefused);
    await expect(openWebSocket(gate, `/${name}`)).rejects.toMatchObject({ status: 502 });
  });

  it("is not believed as a login service, nor about a token", async () => {
    expect(await logIn(gate, "alice", WRONG)).toBe(503);
    expect((await ask(gate, "/", { token: "opaque-token" })).status).toBe(503);
  });
});

describe("a request in clear text in front of a client's handshake", () => {
  const PROXY = "127.0.0.2";
  const V1 = "PROXY TCP4 203.0.113.7 10.0.0.1 4660 443\r\n";
  const SMUGGLED = request(["GET /public/smuggled HTTP/1.1", "Host: localhost"]);
  const GET = request(["GET /public/x HTTP/1.1", "Host: localhost", "Connection: close"]);
  let gate: Sallyport;
  let backend: RawBackend;
  beforeAll(async () => {
    backend = stack.use(await startRawBackend());
    gate = stack.use(
      await startSallyport({
        withoutToken: true,
        target: backend.url,
        config: { server: { trustedProxies: [PROXY], proxyProtocol: "accept", http2: true } },
      }),
    );
  });

  /** Sends these bytes, in one segment with the ClientHello or before it, and a request over TLS. */
  async function sent(bytes: string, from: string, apart: boolean): Promise<string> {
    const socket = connect({ host: "127.0.0.1", port: gate.port, localAddress: from });
    socket.on("error", () => undefined);
    await once(socket, "connect");
    const closed = once(socket, "close");
    if (!apart) socket.cork();
    socket.write(bytes);
    const secure = connectTls({ socket, ca: gate.ca, servername: "localhost" });
    let answer = "";
    secure.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
    secure.on("error", () => socket.destroy());
    secure.write(GET);
    setImmediate(() => socket.uncork());
    await closed;
    return answer;
  }

  it.each([
    ["after a PROXY header", V1 + SMUGGLED, PROXY],
    ["after a PROXY header, HTTP/2", `${V1}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`, PROXY],
    ["before a PROXY header", SMUGGLED + V1, PROXY],
    ["a single byte after a PROXY header", `${V1}G`, PROXY],
    ["of a client without a proxy", SMUGGLED, "127.0.0.3"],
  ])("is never served, nor what comes through TLS behind it: %s", async (_what, bytes, from) => {
    for (const apart of [false, true]) {
      expect(await sent(bytes, from, apart)).not.toContain("200 OK");
    }
    expect(backend.seen()).toEqual([]);
  });

  it("a handshake in one segment with the header is served", async () => {
    backend.forget();
    expect(await sent(V1, PROXY, false)).toContain("200 OK");
    expect(backend.seen()).toEqual(["GET /public/x"]);
  });

  it.each(["TLS/1.0", "TLS/1.2, HTTP/1.1"])("no connection is upgraded to %s", async (protocol) => {
    const fields = ["Host: localhost", "Connection: Upgrade", `Upgrade: ${protocol}`];
    const upgrade = request(["OPTIONS /public/x HTTP/1.1", ...fields]);
    const { raw } = await exchange(gate, upgrade + SMUGGLED, { responses: Infinity });
    expect(raw).toMatch(/^HTTP\/1\.1 400 /);
    expect(backend.seen()).not.toContain("GET /public/smuggled");
  });
});
