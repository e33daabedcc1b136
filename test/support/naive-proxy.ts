/**
 * A proxy with a token check, written the way the README of http-proxy-3 shows it: what the attacks in test/security are
 * seen to succeed against. A child process of its own, since some of them end it. Prints its port.
 *
 * Arguments: the target, and a JSON object of further options of `createProxyServer`, or `agent: false`.
 */
import { Agent, createServer, type IncomingMessage } from "node:http";
import { createProxyServer, type ServerOptions } from "http-proxy-3";
import { listeningPort } from "./listening-port.ts";

const [target = "", given = "{}"] = process.argv.slice(2);
const options: ServerOptions = JSON.parse(given);
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
  if (hasToken(request) || isPublic(request)) {
    proxy.web(request, response);
  } else {
    response.writeHead(401).end();
  }
});
server.on("upgrade", (request, socket, head) => {
  if (hasToken(request) || isPublic(request)) {
    proxy.ws(request, socket, head);
  } else {
    socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }
});
server.listen(0, "127.0.0.1", () => console.log(listeningPort(server)));

function hasToken(request: IncomingMessage): boolean {
  return request.headers.authorization === "Bearer good";
}

function isPublic(request: IncomingMessage): boolean {
  return request.url?.startsWith("/public") === true;
}
