import { constants, randomBytes, X509Certificate } from "node:crypto";
import type { EventEmitter } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import { createServer, type Server as SecureServer, type ServerOptions } from "node:https";
import {
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
  type TlsOptions,
  type TLSSocket,
} from "node:tls";
import type { TrackedResponse } from "../request/tracked-response.ts";
import { ConfigError } from "../../core/config-problem.ts";
import type { ReadText } from "./certificate.ts";
import { ClientCertificate } from "./client-certificate.ts";
import type { CertificatePair } from "./development-certificate.ts";

/**
 * The cipher suites for clients: forward secrecy and authenticated encryption only (RFC 9325 §4.2). TLS 1.3 has no
 * others; for TLS 1.2 these are ECDHE with GCM or ChaCha20-Poly1305. OpenSSL's security level 2 refuses keys and
 * signatures with less than 112 bits of security, whatever its configuration file says. AES-128 comes first, as in Mozilla's
 * recommendations and in Go: processors have instructions for SHA-256, and a handshake takes 0.95 to 0.97 of the CPU time.
 */
export const SUITES = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
  "@SECLEVEL=2",
].join(":");

/**
 * The key that encrypts session tickets (RFC 5077 §4). Replicas that share it can resume each other's sessions. Text only, so
 * that it can be posted to a worker thread.
 */
export interface TicketKey {
  /** Name, HMAC and AES key in base64, as Node and OpenSSL take them. */
  readonly key: string;
  /** Whether it comes from a file, which other replicas may share. */
  readonly shared: boolean;
}

const KEY_BYTES = 48;
const BASE64 = /^[A-Za-z0-9+/]{64}$/;

/** Creates a key for this process and all its threads. */
export function newTicketKey(): TicketKey {
  return { key: randomBytes(KEY_BYTES).toString("base64"), shared: false };
}

/** Reads a key from a file. @throws ConfigError if it is unreadable or contains no such key; never reveals the content. */
export function readTicketKey(file: string, textOf: ReadText): TicketKey {
  const key = textOf(file).trim();
  if (BASE64.test(key)) return { key, shared: true };
  const message = `holds no key of ${KEY_BYTES} bytes in base64: make one with openssl rand -base64 ${KEY_BYTES}`;
  throw new ConfigError([{ file, message }]);
}

/** The TLS settings for clients. Strings only, so that they can be posted to a worker thread. */
export interface ServerTls {
  /** PEM texts: the chain, leaf first, and the key of the leaf. */
  readonly cert: string;
  readonly key: string;
  /** The certificates for clients that ask for one of their names (SNI). Undefined if all clients get the one above. */
  readonly others?: readonly CertificatePair[] | undefined;
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
  const { clientCertificates, others } = tls;
  const server: SecureServer = createServer({
    ...http,
    ...secureContextOptions(tls),
    ...(others && {
      SNICallback: (name: string, done: Chosen) => done(null, contexts.get(server)?.(name)),
    }),
    ALPNCallback: ({ protocols }) => chooseProtocol(protocols, http2()),
    ...(clientCertificates && {
      requestCert: true,
      rejectUnauthorized: clientCertificates.required,
    }),
  });
  contexts.set(server, contextsOf(tls));
  // Node's own listener treats a failed handshake as a broken request, but the client could not read a response.
  server.removeAllListeners("tlsClientError");
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

type Chosen = (error: null, context: SecureContext | undefined) => void;
type Contexts = (asked: string) => SecureContext | undefined;

/** Returns the context of each server for the certificate with a name; undefined for the first. */
const contexts = new WeakMap<SecureServer, Contexts>();

/**
 * The contexts differ only in their certificates: a name must not choose how clients are checked (CVE-2026-53622). Each contains all
 * authorities of clients, so it is made when a client asks for it: 8 ms and 0.9 MB for 145 authorities.
 */
function contextsOf({ others = [], ...tls }: ServerTls): Contexts {
  if (others.length === 0) return () => undefined;
  const byName = new Map<string, Contexts>();
  for (const name of serverNamesOf(tls.cert)) byName.set(name, () => undefined);
  for (const pair of others) {
    let context: SecureContext | undefined;
    const made = () => (context ??= createSecureContext(secureContextOptions({ ...tls, ...pair })));
    for (const name of serverNamesOf(pair.cert)) byName.set(name, made);
  }
  return (asked) => forServerName(byName, folded(asked))?.(asked);
}

/** Returns what is known for a name, or else for a wildcard in place of its first label (RFC 9525 §6.3). */
export function forServerName<K>(known: ReadonlyMap<string, K>, name: string): K | undefined {
  return known.get(known.has(name) ? name : name.replace(/^[^.]+/, "*"));
}

/**
 * Returns the names by which clients choose a certificate (SNI, RFC 6066 §3): its DNS names, of which those are left out that are
 * neither host names nor wildcards. Nobody asks for an address.
 */
export function serverNamesOf(cert: string): string[] {
  const { dnsNames } = new ClientCertificate(new X509Certificate(cert));
  return [...new Set(dnsNames.map(folded))].filter((name) => /^[\w*.-]+$/.test(name));
}

/** Returns a name as names are compared: in lower case (RFC 4343), without a dot at its end. */
function folded(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/** Throws the error of OpenSSL if `renewContext` would fail. `readCertificate` has tried each certificate. */
export function validateContext(tls: ServerTls): void {
  createSecureContext(secureContextOptions(tls));
}

/**
 * Applies new certificates, keys, minimum version or CAs to new connections. Cannot change whether clients are asked for
 * a certificate at all, nor whether they choose one of several. Throws the error of OpenSSL if they are unusable, and then changes nothing.
 */
export function renewContext(server: SecureServer, tls: ServerTls): void {
  const next = contextsOf(tls);
  server.setSecureContext(secureContextOptions(tls));
  contexts.set(server, next);
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
