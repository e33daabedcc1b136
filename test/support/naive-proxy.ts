/**
 * A proxy with a token check, written the way the README of http-proxy-3 shows it. The attacks in test/security succeed
 * against it. It runs in a child process, since some attacks crash it, and prints its port.
 *
 * Arguments: the target, and a JSON object of `NaiveOptions`.
 */
import { Agent, createServer, type IncomingMessage } from "node:http";
import { flushCompileCache } from "node:module";
import { createProxyServer, type ServerOptions } from "http-proxy-3";
import { listeningPort } from "./listening-port.ts";

/** Options of `createProxyServer`, or `agent: false`, and common additions. */
interface NaiveOptions extends ServerOptions {
  /** Checks only requests, although upgrades arrive through a separate event. */
  readonly forgetsUpgrades?: boolean;
  /** Resends any request whose connection broke. */
  readonly sendsAgain?: boolean;
  /** Logs each request as a line of hand-written JSON. */
  readonly logs?: boolean;
}

const [target = "", given = "{}"] = process.argv.slice(2);
const { forgetsUpgrades, sendsAgain, logs, ...options }: NaiveOptions = JSON.parse(given);
const proxy = createProxyServer({
  target,
  ws: true,
  xfwd: true,
  agent: new Agent({ keepAlive: true }),
  ...options,
});

proxy.on("error", (error, _request, response) => {
  if ("writeHead" in response) {
    response.writeHead(502, { "content-type": "text/plain" });
  }
  response.end("code" in error ? String(error.code) : error.message);
});
proxy.on("proxyReq", (toBackend, request) => {
  toBackend.removeHeader("authorization");
  toBackend.setHeader("x-auth-subject", hasToken(request) ? "alice" : "nobody");
});

const server = createServer((request, response) => {
  if (logs === true) print(request);
  if (!hasToken(request) && !isPublic(request)) {
    response.writeHead(401).end();
  } else if (sendsAgain === true) {
    proxy.web(request, response, {}, () => proxy.web(request, response));
  } else {
    proxy.web(request, response);
  }
});
server.on("upgrade", (request, socket, head) => {
  if (logs === true) print(request);
  if (forgetsUpgrades === true || hasToken(request) || isPublic(request)) {
    proxy.ws(request, socket, head);
  } else {
    socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }
});
server.listen(0, "127.0.0.1", () => {
  console.log(listeningPort(server));
  // Makes the next starts cheaper. Node itself would write it only if this process ended normally.
  flushCompileCache();
});

function hasToken(request: IncomingMessage): boolean {
  return request.headers.authorization === "Bearer good";
}

function isPublic(request: IncomingMessage): boolean {
  return request.url?.startsWith("/public") === true;
}

function print({ url, headers }: IncomingMessage): void {
  const host = headers.host ?? "";
  console.log(
    `{"level":"info","host":"${host}","url":"${url}","headers":${JSON.stringify(headers)}}`,
  );
}
