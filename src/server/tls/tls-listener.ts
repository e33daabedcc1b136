import { constants } from "node:crypto";
import type { EventEmitter } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import { createServer, type Server as SecureServer, type ServerOptions } from "node:https";
import {
  createSecureContext,
  type SecureContextOptions,
  type TlsOptions,
  type TLSSocket,
} from "node:tls";
import type { TrackedResponse } from "../request/tracked-response.ts";
import type { TicketKey } from "./ticket-key.ts";
import { SUITES } from "./tls-suites.ts";

/** The TLS settings for clients. Strings only, so that they can be posted to a worker thread. */
export interface ServerTls {
  /** PEM texts: the chain, leaf first, and the key of the leaf. */
  readonly cert: string;
  readonly key: string;
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** Encrypts session tickets, for all threads alike. */
  readonly ticketKey: TicketKey;
  /** Undefined if clients are not asked for a certificate. */
  readonly clientCertificates?:
    | {
        /** PEM text of the certificate authorities for clients. */
        readonly authorities: string;
        /** Whether clients without a certificate are refused. */
        readonly required: boolean;
      }
    | undefined;
}

/**
 * Renegotiation lets a client repeat the costly half of a handshake, and change its certificate between two requests
 * (CVE-2011-1473, CVE-2009-3555). Node's `disableRenegotiation` reacts only when the second handshake is already
 * running.
 */
const NO_RENEGOTIATION = constants.SSL_OP_NO_RENEGOTIATION;
/** A resumed session would keep its client certificate, which may have expired since: every connection must present one. */
const NO_RESUMPTION = constants.SSL_OP_NO_TICKET;
/** Sessions are resumed only in the same context. Node would derive it from the command line, which may differ by replica. */
const SESSION_CONTEXT = "sallyport";

/**
 * Creates an HTTPS server.
 *
 * @param http the options shared with plain HTTP; `handshakeTimeout` in milliseconds.
 * @param http2 whether clients may choose HTTP/2 now.
 */
export function createTlsServer(
  http: ServerOptions<typeof IncomingMessage, typeof TrackedResponse>,
  tls: ServerTls,
  http2: () => boolean,
): Server {
  const { clientCertificates } = tls;
  const server = createServer({
    ...http,
    ...secureContextOptions(tls),
    ALPNCallback: ({ protocols }) => chooseProtocol(protocols, http2()),
    ...(clientCertificates && {
      requestCert: true,
      rejectUnauthorized: clientCertificates.required,
    }),
  });
  // Node's own listener treats a failed handshake as a broken request, but the client could not read a response.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

/** Throws the error of OpenSSL if `renewContext` would fail. */
export function validateContext(tls: ServerTls): void {
  createSecureContext(secureContextOptions(tls));
}

/**
 * Applies a new certificate, key, minimum version or CAs to new connections. Cannot change whether clients are asked for
 * a certificate at all. Throws the error of OpenSSL if they are unusable, and then changes nothing.
 */
export function renewContext(server: SecureServer, tls: ServerTls): void {
  server.setSecureContext(secureContextOptions(tls));
}

function secureContextOptions({
  cert,
  key,
  minVersion,
  ticketKey,
  clientCertificates,
}: ServerTls): SecureContextOptions & Pick<TlsOptions, "ticketKeys"> {
  return {
    cert,
    key,
    minVersion,
    // Explicit, because the command line and OpenSSL's configuration file could override the default.
    maxVersion: "TLSv1.3",
    ciphers: SUITES,
    honorCipherOrder: true,
    ticketKeys: Buffer.from(ticketKey.key, "base64"),
    sessionIdContext: SESSION_CONTEXT,
    secureOptions: NO_RENEGOTIATION | (clientCertificates === undefined ? 0 : NO_RESUMPTION),
    ...(clientCertificates && { ca: clientCertificates.authorities }),
  };
}

/**
 * Chooses the protocol of a connection: HTTP/2 if both sides speak it.
 *
 * @param offered the protocols that the client offers (ALPN, RFC 7301).
 * @returns undefined if no protocol is shared; the handshake then fails.
 */
function chooseProtocol(offered: readonly string[], http2: boolean): string | undefined {
  if (http2 && offered.includes("h2")) return "h2";
  return offered.includes("http/1.1") ? "http/1.1" : undefined;
}

/**
 * Refuses an invalid optional certificate. It may be missing but not invalid: a client that presents an untrusted or
 * expired one expects to be authenticated, and must not continue anonymously. (If certificates are required, Node has
 * already refused it.)
 *
 * @returns whether the connection is closed.
 */
export function refuseWrongCertificate(server: EventEmitter, socket: TLSSocket): boolean {
  if (socket.authorized || socket.getPeerX509Certificate() === undefined) return false;
  server.emit("tlsClientError", socket.authorizationError, socket);
  return true;
}
