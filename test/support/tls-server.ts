import { once } from "node:events";
import { createServer, type SecureVersion, type TLSSocket } from "node:tls";
import { type ClientAuthority, clientAuthority } from "./client-certificates.ts";
import { listeningPort } from "./listening-port.ts";

/** The host name in its certificates. */
export const TLS_NAME = "orders.example.com";

export interface TlsServer extends AsyncDisposable {
  /** `https://127.0.0.1:…`. */
  readonly url: string;
  /** Certificate of the authority that issued its certificate, PEM. */
  readonly ca: string;
  /** The same authority. Its client certificates are accepted. */
  readonly authority: ClientAuthority;
}

export interface TlsServerOptions {
  /** The validity of its certificate, in days from now; 90 days by default. */
  readonly days?: readonly [from: number, to: number];
  readonly version?: SecureVersion;
  /** Refuses clients without a certificate. */
  readonly wantsCertificate?: boolean;
}

/** Starts a server that completes the handshake and then sends nothing. */
export async function startTlsServer(options: TlsServerOptions = {}): Promise<TlsServer> {
  const { days = [-1, 90], version = "TLSv1.3", wantsCertificate = false } = options;
  const authority = await clientAuthority("Sallyport servers");
  const subject = [{ shortName: "CN", value: TLS_NAME }];
  const pair = await authority.certificate({ subject, usage: "serverAuth", days });
  const sockets = new Set<TLSSocket>();
  const server = createServer({
    ...pair,
    ca: authority.cert,
    minVersion: version,
    maxVersion: version,
    requestCert: wantsCertificate,
    rejectUnauthorized: wantsCertificate,
  });
  server.on("secureConnection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `https://127.0.0.1:${listeningPort(server)}`,
    ca: authority.cert,
    authority,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
