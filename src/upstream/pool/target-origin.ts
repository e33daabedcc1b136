import { isIP, type LookupFunction } from "node:net";
import type { ConnectionOptions } from "node:tls";

/** PEM texts, and the name that the backend's certificate must have if it is not the address. */
export interface UpstreamTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
}

/** The parsed parts of an address. */
export interface TargetOrigin {
  readonly protocol: "http:" | "https:";
  readonly hostname: string;
  /** The value of `Host` that names it. */
  readonly authority: string;
  readonly port: number;
  readonly socketPath: string | undefined;
  readonly serverName: string | undefined;
  readonly tls: UpstreamTls | undefined;
  /** Resolves the name for a connection; by default, the system does. */
  readonly lookup?: LookupFunction | undefined;
}

type TargetTlsOptions = Pick<ConnectionOptions, "servername" | "ca" | "cert" | "key">;

/**
 * Returns the options of `tls.connect` for a target. Always sets `servername`: Node would otherwise take
 * it from the request's Host, which the client chooses, and verify the certificate against that. If empty, no name is
 * sent, and the certificate is verified against the address.
 */
export function tlsOptionsOf({ tls, serverName = "" }: TargetOrigin): TargetTlsOptions {
  return { servername: serverName, ca: tls?.ca, cert: tls?.cert, key: tls?.key };
}

/** Returns the address of an origin, for logs. */
export function addressOf({ protocol, hostname, port }: TargetOrigin): string {
  return `${protocol}//${isIP(hostname) === 6 ? `[${hostname}]` : hostname}:${port}`;
}

/**
 * Parses an address without resolving it.
 *
 * @throws TypeError if it is malformed.
 */
export function originOf(address: string, tls?: UpstreamTls): TargetOrigin {
  if (address.startsWith("unix:")) {
    const socketPath = address.replace(/^unix:(?:\/\/)?/, "");
    const name = tls?.serverName;
    return {
      protocol: "http:",
      hostname: "localhost",
      authority: "localhost",
      port: 80,
      socketPath,
      serverName: name,
      tls,
    };
  }
  const url = new URL(address);
  const protocol = url.protocol === "https:" ? "https:" : "http:";
  const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? (protocol === "https:" ? 443 : 80) : Number(url.port);
  const serverName = tls?.serverName ?? (isIP(hostname) === 0 ? hostname : undefined);
  const authority = url.host;
  return { protocol, hostname, authority, port, socketPath: undefined, serverName, tls };
}
