// The settings that a stack gets from bench/peers/node-stack.ts, and how it reports that it listens.
import { readFileSync } from "node:fs";
import { createServer as createPlainServer } from "node:http";
import { createServer as createTlsServer } from "node:https";

/** Address of the backend, public key (PEM), issuer, audience, algorithm, and files for TLS. */
export const given = JSON.parse(process.argv[2] ?? "{}");

/** Certificate, key and TLS 1.3; undefined without TLS. */
export const tlsOptions = given.tls && {
  cert: readFileSync(given.tls.certFile),
  key: readFileSync(given.tls.keyFile),
  minVersion: "TLSv1.3",
};

/** Starts an HTTP or HTTPS server on a port that the system chooses. */
export function listen(handler) {
  const server = tlsOptions ? createTlsServer(tlsOptions, handler) : createPlainServer(handler);
  server.listen(0, "127.0.0.1", () => tell(server));
  return server;
}

export function tell(server) {
  console.log(`listening ${server.address().port}`);
}
