/** Insecure servers that the self-test must fail against, in addition to the naive proxy. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import {
  createServer as createHttpServer,
  type IncomingMessage,
  request as ask,
  type ServerResponse,
} from "node:http";
import { createServer, type Socket } from "node:net";
import { createAttackerKey, tokenParts } from "../../tools/selftest/forgeries.ts";
import { readCarelessly, translateCarelessly } from "../support/careless-http2.ts";
import { listening, type Listening } from "../support/listening.ts";

/** Returns a signed token for alice from an arbitrary issuer. */
export function someToken(): string {
  const claims = { sub: "alice", iss: "somebody", exp: 4_000_000_000 };
  const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const parts = tokenParts(`${part({ alg: "ES256", kid: "one" })}.${part(claims)}.AAAA`);
  if (parts === undefined) throw new Error("not a token");
  return createAttackerKey("ES256").sign(parts);
}

export function somePublicKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey;
}

/** Answers 200 to anything, and closes the connection. */
export function startYesSayer(): Promise<Listening> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
  });
  return listening(server);
}

/** Does the same, also over HTTP/2. */
export function startYesSayerOfBoth(): Promise<Listening> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    whenBegun(socket, (http2) => {
      if (http2) readCarelessly(socket, (_request, answer) => answer(1, 200, [], "ok"));
      else socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
  });
  return listening(server);
}

const PUBLIC = /\.css/;

/** Detects HTTP/2 by its first bytes, and puts them back for the next reader. */
function whenBegun(socket: Socket, begin: (http2: boolean) => void): void {
  socket.once("data", (chunk: Buffer) => {
    begin(chunk.toString("latin1").startsWith("PRI * HTTP/2.0"));
    socket.unshift(chunk);
  });
}

/**
 * Starts a gate that checks the token, and then builds a new request for the backend, carelessly: without body and
 * query, with only the first cookie, with trailers as headers, without the fields named by `Connection`. It treats any
 * path with `.css` in it as public. Over HTTP/2 it checks no rules at all.
 */
export function startCarelessGate(socketPath: string, token: string): Promise<Listening> {
  const server = createHttpServer((request, response) => {
    if (request.headers.authorization === `Bearer ${token}` || PUBLIC.test(request.url ?? "")) {
      request.resume().on("end", () => forward(request, response, socketPath));
    } else {
      response.writeHead(401).end();
    }
  });
  server.maxHeadersCount = 0;
  return listening(
    createServer((socket) => {
      socket.on("error", () => undefined);
      whenBegun(socket, (http2) => {
        if (http2) serveHttp2(socket, socketPath, token);
        else server.emit("connection", socket);
      });
    }),
  );
}

/** Checks the token, and writes the request to the backend by hand. */
function serveHttp2(socket: Socket, path: string, token: string): void {
  readCarelessly(socket, (request, answer) => {
    const { stream, fields, path: url } = request;
    const bearer = fields.some(
      ([name, value]) => name === "authorization" && value === `Bearer ${token}`,
    );
    if (!bearer && !url.startsWith("/public/") && !PUBLIC.test(url)) {
      answer(stream, 401, [], "");
      return;
    }
    try {
      for (const [name] of fields) HANDLERS[name]?.(name);
      const cookie = fields.find(([name]) => name === "cookie");
      const kept = fields.filter((field) => field[0] !== "cookie" || field === cookie);
      translateCarelessly({ path }, { ...request, fields: kept }, answer);
    } catch {
      answer(stream, 500, [], "");
    }
  });
}

/** Handlers by header name. It is a plain object on purpose: lookups also find inherited properties. */
const HANDLERS: Record<string, (value: string) => void> = {};

function forward(request: IncomingMessage, response: ServerResponse, socketPath: string): void {
  const { headers, trailers, method, url = "/" } = request;
  try {
    for (const name of request.rawHeaders) HANDLERS[name]?.(name);
    const { connection = "", cookie = "", ...others } = headers;
    const sent: NodeJS.Dict<string | string[]> = {
      ...others,
      ...trailers,
      "x-auth-subject": "alice",
    };
    for (const name of connection.toLowerCase().split(/, */)) delete sent[name];
    for (const name of ["content-length", "transfer-encoding", "upgrade"]) delete sent[name];
    sent["cookie"] = cookie.split(";")[0];
    const path = new URL(url, "http://gate.invalid").pathname;
    const asked = ask({ socketPath, method, path, headers: sent, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, { "content-type": "application/json" });
      answer.pipe(response);
    });
    asked.on("error", () => response.destroy());
    asked.end();
  } catch {
    response.writeHead(500).end();
  }
}
