import { connect, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { readCarelessly, translateCarelessly } from "../../test/support/careless-http2.ts";
import { testCertificates } from "../../test/support/certificates.ts";
import { listening } from "../../test/support/listening.ts";
import { PUBLIC, type Subject } from "./subject.ts";

const TOKEN = "good";
const ALICE: ReadonlyMap<string, string> = new Map([["x-auth-subject", "alice"]]);
const NOBODY: ReadonlyMap<string, string> = new Map();

/**
 * A proxy in which the fuzzer must find faults: it trusts a PROXY protocol header from anyone, detects HTTP/2 only by its first
 * bytes, whatever was negotiated, and ignores the rules of HTTP/2.
 */
export async function startNaiveConnections(backend: string, secure: boolean): Promise<Subject> {
  const { ca, server: pair } = await testCertificates();
  const { port } = new URL(backend);
  const target = { host: "127.0.0.1", port: Number(port) };
  const serve = (socket: Socket): void => {
    socket.on("error", () => socket.destroy());
    beginning(socket, (client, http2) => {
      if (http2) serveStreams(socket, target, client);
      else serveRequest(socket, target, client);
    });
  };
  const options = { ...pair, ALPNProtocols: ["h2", "http/1.1"] };
  const server = secure ? createTlsServer(options, serve) : createServer(serve);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  const standing = await listening(server);
  return {
    port: standing.port,
    ca: secure ? ca : undefined,
    credentials: { valid: TOKEN, refused: ["bad"] },
    keepsContract: false,
    identity: ({ hasToken }) => (hasToken ? ALICE : NOBODY),
    troubles: () => [],
    exited: () => false,
    residentBytes: () => Promise.resolve(0),
    loop: undefined,
    alive: () => Promise.resolve(true),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await standing[Symbol.asyncDispose]();
    },
  };
}

/** Reads the first bytes, and leaves the data after a PROXY protocol header to the next reader. */
function beginning(socket: Socket, begin: (client: string, http2: boolean) => void): void {
  socket.once("data", (chunk: Buffer) => {
    const text = chunk.toString("latin1");
    const [header = "", named] = /^PROXY TCP\d (\S+)[^\n]*\n/.exec(text) ?? [];
    const rest = text.slice(header.length);
    begin(named ?? socket.remoteAddress ?? "", rest.startsWith("PRI * HTTP/2.0"));
    if (rest !== "") socket.unshift(Buffer.from(rest, "latin1"));
  });
}

type Target = { readonly host: string; readonly port: number };

function serveStreams(socket: Socket, target: Target, client: string): void {
  readCarelessly(socket, (request, answer) => {
    const bearer = request.fields.some(
      ([name, value]) => name === "authorization" && value === `Bearer ${TOKEN}`,
    );
    if (!bearer && !request.path.startsWith(PUBLIC)) {
      answer(request.stream, 401, [], "");
      return;
    }
    const told = bearer ? ([["x-auth-subject", "alice"]] as const) : [];
    const fields = [...request.fields, ...told, ["x-forwarded-for", client] as const];
    translateCarelessly(target, { ...request, fields }, answer);
  });
}

/** Serves one request per connection, and accepts a token anywhere in it. */
function serveRequest(socket: Socket, target: Target, client: string): void {
  socket.once("data", (chunk: Buffer) => {
    const text = chunk.toString("latin1");
    const bearer = text.includes(`Bearer ${TOKEN}`);
    if (!bearer && !text.includes(` ${PUBLIC}`)) {
      socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    const told = bearer ? "X-Auth-Subject: alice\r\n" : "";
    const fields = `${told}X-Forwarded-For: ${client}\r\n\r\n`;
    const toBackend = connect(target);
    toBackend.on("error", () => socket.destroy()).on("close", () => socket.destroy());
    toBackend.write(text.replace("\r\n\r\n", `\r\n${fields}`), "latin1");
    toBackend.pipe(socket);
  });
}
