import { constants } from "node:crypto";
import type { EventEmitter } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import { createServer, type Server as SecureServer, type ServerOptions } from "node:https";
import { createSecureContext, type SecureContextOptions, type TLSSocket } from "node:tls";
import type { TrackedResponse } from "./tracked-response.ts";
import { SUITES } from "./tls-suites.ts";

/** What is needed to speak TLS with clients. Texts alone, so that it can be posted to a worker thread. */
export interface ServerTls {
  /** PEM texts: the chain, leaf first, and the key of the leaf. */
  readonly cert: string;
  readonly key: string;
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** Undefined when clients are not asked for a certificate. */
  readonly clientCertificates?:
    | {
        /** PEM text of the authorities that clients' certificates come from. */
        readonly authorities: string;
        /** Whether a client without a certificate is refused, too. */
        readonly required: boolean;
      }
    | undefined;
}

/**
 * A client could have the server do the costly half of a handshake over and over, and change its certificate between two
 * requests (CVE-2011-1473, CVE-2009-3555). Node's own `disableRenegotiation` tells of it when the second handshake runs already.
 */
const NO_RENEGOTIATION = constants.SSL_OP_NO_RENEGOTIATION;
/** A session that is resumed would bring its old certificate along, which may have ended since: each connection proves anew. */
const NO_RESUMPTION = constants.SSL_OP_NO_TICKET;

/** @param http the options that plain HTTP has, too; `handshakeTimeout` in milliseconds. */
export function createTlsServer(
  http: ServerOptions<typeof IncomingMessage, typeof TrackedResponse>,
  tls: ServerTls,
): Server {
  const { clientCertificates } = tls;
  const server = createServer({
    ...http,
    ...contextOf(tls),
    ALPNProtocols: ["http/1.1"],
    ...(clientCertificates && {
      requestCert: true,
      rejectUnauthorized: clientCertificates.required,
    }),
  });
  // Node's own listener would treat it as a broken request: but nothing was asked, and no answer can be read.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  if (clientCertificates?.required === false) {
    // Before the listener of Node's that reads requests, so that a connection that is refused here carries none.
    server.prependListener("secureConnection", (socket: TLSSocket) => {
      refuseWrongCertificate(server, socket);
    });
  }
  return server;
}

/** Throws the error of OpenSSL for what `renewContext` could not use. */
export function tryContext(tls: ServerTls): void {
  createSecureContext(contextOf(tls));
}

/**
 * Has new connections use another certificate, key, lowest version or other authorities; not whether clients are asked for
 * a certificate at all. Throws the error of OpenSSL when they cannot be used, and then nothing has changed.
 */
export function renewContext(server: SecureServer, tls: ServerTls): void {
  server.setSecureContext(contextOf(tls));
}

function contextOf({ cert, key, minVersion, clientCertificates }: ServerTls): SecureContextOptions {
  return {
    ...{ cert, key, minVersion },
    // Said here, or the command line and OpenSSL's configuration file could say otherwise.
    maxVersion: "TLSv1.3",
    ciphers: SUITES,
    honorCipherOrder: true,
    secureOptions: NO_RENEGOTIATION | (clientCertificates === undefined ? 0 : NO_RESUMPTION),
    ...(clientCertificates && { ca: clientCertificates.authorities }),
  };
}

/**
 * An optional certificate may be absent, not wrong: who shows one that is foreign or has ended believes to be somebody, and
 * must not go on as nobody. (Where it is required, Node has refused already.)
 */
function refuseWrongCertificate(server: EventEmitter, socket: TLSSocket): void {
  if (socket.authorized || socket.getPeerX509Certificate() === undefined) return;
  server.emit("tlsClientError", socket.authorizationError, socket);
}
