import { BlockList, isIP, isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { z } from "zod";
import {
  duration,
  filePath,
  flag,
  headerName,
  listen,
  mapping,
  network,
  oneOf,
  optional,
  refuse,
  settings,
  size,
  sizeOrUnlimited,
  urlPath,
  whole,
} from "../fields.ts";
import { OWN_PATH } from "./browser-section.ts";
import { foldedName } from "../../lib/http/header-values.ts";
import { comesFromProxies } from "../../upstream/headers/header-names.ts";
import { UNDERSCORE_HEADERS } from "../../core/request/underscore-headers.ts";
import { MAX_HEADER_FIELDS } from "../../server/request/intake.ts";
import { listAt, mappingAt, type PathProblem, type ReadAtStart, type Written } from "../written.ts";
import { originOf } from "../../upstream/pool/target-origin.ts";
import type { Configuration } from "../configuration.ts";

/** The section `server`: the listener for clients. */
export const server = {
  schema: serverSection,
  rules: [proxyProblems],
  rulesOfValid: [ownListenerProblems],
  atStart: [
    { key: "server.listen" },
    { key: "server.workers" },
    { key: "server.proxyProtocol" },
    { key: "server.limits.headerBytes" },
    // TLS handshakes alone keep the old one.
    { key: "server.timeouts.header", keeps: false },
    { key: "server.tls.mode", keeps: "server.tls" },
    { key: "server.tls.clientCertificates.mode", keeps: "server.tls.clientCertificates" },
  ] satisfies readonly ReadAtStart[],
};

/** The address on which clients are served by default. */
export const CLIENTS_LISTEN = "0.0.0.0:8443";

function serverSection() {
  return z
    .strictObject(
      {
        listen: listen()
          .prefault(CLIENTS_LISTEN)
          .describe("Address and port for clients; port 0: any free one"),
        tls: serverTls().describe("Certificate and key, or off behind a mesh that provides TLS"),
        workers: whole(0, 512).default(1).describe("Threads that serve clients; 0: one per core"),
        trustedProxies: z
          .array(network())
          .default([])
          .describe("Networks of proxies whose X-Forwarded-* is trusted"),
        trustedHeaders: z
          .array(
            headerName().refine(
              (name) => comesFromProxies(foldedName(name)),
              "must be a header in which proxies report the original request or its client, such as X-Original-URI",
            ),
          )
          .default([])
          .describe(
            "Further headers that pass from a trusted proxy to the backend, such as X-Forwarded-Prefix",
          ),
        ownPath: urlPath("plain")
          .refine((path) => /[^/]$/.test(path), "must not end with a slash")
          .refine(
            (path) => !/^\/(?:api|\.well-known)(?:\/|$)/i.test(path),
            "must not be below /api or /.well-known, where other endpoints are",
          )
          .default(OWN_PATH)
          .describe(
            "Prefix of Sallyport's own pages; while there are any, nothing below it is forwarded. Default: /_sallyport",
          ),
        ...protocols(),
        limits: serverLimits(),
        timeouts: settings("Time limits for clients", {
          header: duration().prefault("10s").describe("Time for the head of a request"),
          request: duration().prefault("5m").describe("Time for the whole request, head included"),
          keepAlive: duration().prefault("65s").describe("Time until an idle connection is closed"),
        }),
        drain: settings("How Sallyport shuts down", {
          delay: duration({ min: 0 })
            .prefault("5s")
            .describe("Time to serve new requests after readiness has failed"),
          timeout: duration({ min: 0 })
            .prefault("20s")
            .describe("Time for running requests after that"),
        }),
      },
      {
        error: ({ code, input }) =>
          code === "invalid_type" && input === undefined
            ? `is missing, and server.tls has no default: ${TLS_CHOICES}`
            : undefined,
      },
    )
    .describe("The listener for clients");
}

/**
 * Returns a tenth of all connections, so that it takes at least ten clients to use all of them, but at least 10: a
 * browser opens six.
 */
function defaultPerAddress(connections: number): number {
  return Math.max(10, Math.ceil(connections / 10));
}

/** The protocols that clients and load balancers may use. */
function protocols() {
  return {
    http2: flag(false).describe("Whether clients may speak HTTP/2, too"),
    proxyProtocol: oneOf(["off", "accept"], "off").describe(
      "accept: connections from trustedProxies must begin with a PROXY protocol header, version 1 or 2",
    ),
    underscoreHeaders: oneOf(UNDERSCORE_HEADERS, "allow").describe(
      "Headers with _ in the name: allow passes those that shadow none of Sallyport's, drop removes all, reject answers 400",
    ),
  };
}

function serverLimits() {
  return z
    .strictObject({
      headerBytes: size({ min: 1024, max: 1024 ** 2 })
        .prefault("16KiB")
        .describe("Size of a request's head"),
      headers: whole(1, MAX_HEADER_FIELDS).default(100).describe("Header fields of a request"),
      bodyBytes: sizeOrUnlimited().prefault("10MiB").describe("Size of a request's body"),
      bufferedBytes: size({ min: 1024 ** 2 })
        .prefault("64MiB")
        .describe("Memory for data buffered for clients, in all threads"),
      streams: whole(1, 10_000)
        .default(100)
        .describe("Concurrent requests on one HTTP/2 connection"),
      connections: whole(1, 1_000_000).default(10_000).describe("Open connections"),
      connectionsPerAddress: optional(
        "Connections per address (IPv6: /64), except trusted proxies; default: a tenth of connections, at least 10",
        whole(1, 1_000_000),
      ),
    })
    .transform((limits) => ({
      ...limits,
      connectionsPerAddress: limits.connectionsPerAddress ?? defaultPerAddress(limits.connections),
    }))
    .prefault({})
    .describe("Limits for clients");
}

const TLS_CHOICES =
  "give { certFile, keyFile }, or { selfSigned: true } for development, or off behind a mesh that provides TLS";

function clientCertificates() {
  return mapping("Requests certificates from clients; the subject goes to the backend", {
    mode: z
      .enum(["optional", "required"])
      .describe("required refuses clients without one; an invalid one is always refused"),
    caFile: filePath().describe("Authorities of the clients' certificates, up to the roots, PEM"),
  });
}

/** The files of one certificate. */
function certificateFiles() {
  return {
    certFile: filePath().describe("Certificate chain, PEM"),
    keyFile: filePath({ secret: true }).describe("Private key, PEM"),
  };
}

function writtenTls() {
  const { certFile, keyFile } = certificateFiles();
  return z.strictObject({
    certFile: certFile.exactOptional(),
    keyFile: keyFile.exactOptional(),
    certificates: optional(
      "Instead of certFile and keyFile: a client gets the certificate with the DNS name that it asks for (SNI), else the first",
      z.array(z.strictObject(certificateFiles())).min(1),
    ),
    minVersion: optional("Oldest TLS version; default: TLSv1.2", z.enum(["TLSv1.2", "TLSv1.3"])),
    ticketKeyFile: filePath({ secret: true })
      .exactOptional()
      .describe("Key for session tickets, 48 random bytes in base64, the same in all replicas"),
    selfSigned: optional("Generates a certificate at start, for development", z.boolean()),
    clientCertificates: clientCertificates().exactOptional(),
  });
}

type WrittenTls = z.output<ReturnType<typeof writtenTls>>;

type ServerTls =
  | (Pick<WrittenTls, "ticketKeyFile" | "clientCertificates"> &
      Required<Pick<WrittenTls, "minVersion">> &
      (
        | (Required<Pick<WrittenTls, "certFile" | "keyFile">> & { readonly mode: "files" })
        | (Required<Pick<WrittenTls, "certificates">> & { readonly mode: "certificates" })
      ))
  | (Pick<WrittenTls, "clientCertificates"> & { readonly mode: "selfSigned" })
  | { readonly mode: "off" };

/** `server.tls`: certificates and keys, client certificates, and session resumption. */
function serverTls() {
  const mapping = writtenTls().transform(chosen);
  // YAML 1.1 (Helm, for one) turns an unquoted `off` into false.
  const off = z.literal(["off", false]).transform((): ServerTls => ({ mode: "off" }));
  return z.union([mapping, off], {
    error: ({ input }) =>
      input === undefined ? `is missing: ${TLS_CHOICES}` : `is not valid: ${TLS_CHOICES}`,
  });
}

function chosen(tls: WrittenTls, context: z.RefinementCtx): ServerTls {
  const { certFile, keyFile, certificates, minVersion = "TLSv1.2", ticketKeyFile } = tls;
  const { selfSigned = false } = tls;
  if (ticketKeyFile !== undefined && tls.clientCertificates !== undefined) {
    return refuse(
      context,
      "has ticketKeyFile and clientCertificates: sessions of clients with a certificate cannot be resumed",
    );
  }
  if (certificates !== undefined && (certFile ?? keyFile) !== undefined) {
    return refuse(context, "has certificates in addition to certFile or keyFile: choose one");
  }
  const named = certFile ?? keyFile ?? certificates ?? tls.minVersion ?? ticketKeyFile;
  const client = tls.clientCertificates && { clientCertificates: tls.clientCertificates };
  if (selfSigned && named === undefined) return { mode: "selfSigned", ...client };
  const more = { minVersion, ...(ticketKeyFile !== undefined && { ticketKeyFile }), ...client };
  if (!selfSigned && certFile !== undefined && keyFile !== undefined) {
    return { mode: "files", certFile, keyFile, ...more };
  }
  if (!selfSigned && certificates !== undefined) {
    return { mode: "certificates", certificates, ...more };
  }
  return refuse(
    context,
    selfSigned
      ? "has files or a version in addition to selfSigned: choose one"
      : `is not complete: ${TLS_CHOICES}`,
  );
}

function proxyProblems({ whole }: Written): PathProblem[] {
  const { proxyProtocol, trustedProxies, trustedHeaders } = mappingAt(whole, "server");
  if (listAt(trustedProxies).length > 0) return [];
  const problems: PathProblem[] = [];
  if (proxyProtocol === "accept") {
    const message = "must not be accept without server.trustedProxies, which name the clients";
    problems.push({ path: ["server", "proxyProtocol"], message });
  }
  if (listAt(trustedHeaders).length > 0) {
    const message = "has no effect without server.trustedProxies, which may send them";
    problems.push({ path: ["server", "trustedHeaders"], message });
  }
  return problems;
}

/**
 * Reports targets that are a listener of this process: each request would loop until no connections are left. Names
 * other than `localhost` are not resolved; loops through such names end with 508.
 */
function ownListenerProblems({ server, admin, upstreams }: Configuration): PathProblem[] {
  const listeners = [
    { key: "server.listen", ...server.listen },
    ...(admin === "off" ? [] : [{ key: "admin.listen", ...admin.listen }]),
  ].map((listener) => ({ ...listener, addresses: addressesOf(listener.host) }));
  return Object.entries(upstreams).flatMap(([name, { targets }]) =>
    targets.flatMap((target, index): PathProblem[] => {
      const { hostname, port, socketPath } = originOf(target);
      const own = listeners.find((each) => each.port === port && isAmong(each.addresses, hostname));
      if (own === undefined || socketPath !== undefined) return [];
      const message = `is Sallyport itself, which listens there by ${own.key}: name the backend`;
      return [{ path: ["upstreams", name, "targets", index], message }];
    }),
  );
}

/** Returns the addresses that reach a listener; for `0.0.0.0` and `::`, those of every interface. */
function addressesOf(host: string): BlockList {
  const addresses = new BlockList();
  const add = (address: string): void =>
    addresses.addAddress(address, isIPv6(address) ? "ipv6" : "ipv4");
  if (host === "0.0.0.0" || host === "::") {
    addresses.addSubnet("127.0.0.0", 8, "ipv4");
    for (const address of ["::1", ...UNSPECIFIED]) add(address);
    for (const { address } of Object.values(networkInterfaces()).flatMap((list) => list ?? [])) {
      add(address);
    }
  } else {
    for (const address of meanings(host)) add(address);
    // Connecting to an unspecified address reaches the loopback.
    if (isAmong(addresses, "localhost")) for (const address of UNSPECIFIED) add(address);
  }
  return addresses;
}

const UNSPECIFIED = ["0.0.0.0", "::"];

function isAmong(addresses: BlockList, host: string): boolean {
  return meanings(host).some((address) =>
    addresses.check(address, isIPv6(address) ? "ipv6" : "ipv4"),
  );
}

/** Returns the addresses of a host without a DNS look-up. */
function meanings(host: string): string[] {
  if (isIP(host) !== 0) return [host];
  return host.toLowerCase() === "localhost" ? ["127.0.0.1", "::1"] : [];
}
