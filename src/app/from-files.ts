import { createPrivateKey } from "node:crypto";
import type { Snapshot, SnapshotFiles } from "../config/snapshot.ts";
import type { Configuration } from "../config/configuration.ts";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import type { FileReader } from "../credentials/stores/user-store.ts";
import type { FileContent } from "../lib/files/regular-file.ts";
import type { CertificateEnd } from "../observe/metrics/gauges.ts";
import {
  earliestEnd,
  keepValid,
  notAfter,
  readAuthorities,
  readCertificate,
  type ReadText,
} from "../server/tls/certificate.ts";
import { createDevelopmentCertificate } from "../server/tls/development-certificate.ts";
import {
  forServerName,
  newTicketKey,
  readTicketKey,
  serverNamesOf,
  type TicketKey,
  validateContext,
} from "../server/tls/tls-listener.ts";
import type { ApiKeySet } from "../tokens/api-keys/api-keys.ts";
import { type TrustedKeyFiles, unreadable } from "../tokens/trusted/trusted-keys.ts";
import type { UpstreamOptions } from "../upstream/pool/upstreams.ts";
import type { ServerTls } from "./gate/from-configuration.ts";
import type { TrafficChange } from "./traffic.ts";
import { isKeyed } from "./gate/remote-checks.ts";
import { systemCode } from "../lib/text/error-code.ts";

/** Builds the settings of each feature from the files of one snapshot. */

type Tls = Configuration["server"]["tls"];

type CertificateFiles = Extract<Tls, { readonly mode: "certificates" }>["certificates"][number];

/** Returns the files of the certificates, those of the one that is served by default first; none without files. */
export function certificateFilesOf(tls: Tls): readonly CertificateFiles[] {
  return tls.mode === "certificates" ? tls.certificates : tls.mode === "files" ? [tls] : [];
}

/**
 * Returns the TLS settings at start.
 *
 * @throws ConfigError if the files cannot be read, or key and certificate do not match.
 */
export async function tlsOf(
  { server }: Configuration,
  textOf: ReadText,
  log: Log,
): Promise<ServerTls> {
  const { tls } = server;
  if (tls.mode !== "selfSigned") return tlsFromFiles(tls, textOf);
  log.warn("the certificate is self-signed: for development only");
  const pair = await createDevelopmentCertificate(["localhost", "127.0.0.1", "::1"]);
  const clientCertificates = clientCertificatesOf(tls, textOf);
  return { ...pair, minVersion: "TLSv1.2", ticketKey: newTicketKey(), clientCertificates };
}

/**
 * Returns the TLS settings for certificates in files.
 * @param served the current session ticket key. It is kept unless it comes from a file, or a file has another.
 * @throws ConfigError with all problems of the files.
 */
export function tlsFromFiles(
  tls: Exclude<Tls, { readonly mode: "selfSigned" }>,
  textOf: ReadText,
  served?: TicketKey,
): ServerTls {
  if (tls.mode === "off") return undefined;
  const { minVersion, ticketKeyFile } = tls;
  const own = served?.shared === false ? served : undefined;
  const [pairs, ticketKey, clientCertificates] = createAll([
    () => readCertificates(certificateFilesOf(tls), textOf),
    () =>
      ticketKeyFile === undefined ? (own ?? newTicketKey()) : readTicketKey(ticketKeyFile, textOf),
    () => clientCertificatesOf(tls, textOf),
  ]);
  const [first, ...more] = pairs;
  if (first === undefined) throw new RangeError("empty"); // The schema wants at least one.
  const { cert, key } = first;
  const others =
    tls.mode === "files" ? undefined : more.map((pair) => ({ cert: pair.cert, key: pair.key }));
  const settings = { cert, key, others, minVersion, ticketKey, clientCertificates };
  return validated(settings, first.certFile);
}

/** Reads the certificates of which clients choose one. @throws ConfigError with all problems. */
function readCertificates(files: readonly CertificateFiles[], textOf: ReadText) {
  const pairs = createAll(
    files.map(({ certFile, keyFile }) => () => {
      const { cert, key } = readCertificate(certFile, keyFile, textOf);
      return { certFile, cert, key, kind: createPrivateKey(key).asymmetricKeyType };
    }),
  );
  const taken = new Map<string, string>();
  const problems = pairs.flatMap(({ certFile, cert, kind }, index): ConfigProblem[] => {
    const names = serverNamesOf(cert);
    const twice = names.find((name) => taken.has(name));
    const [first] = pairs;
    const messages = [
      twice !== undefined && `is for ${twice}, and so is ${taken.get(twice)}`,
      names.length === 0 &&
        index > 0 &&
        "has no DNS name by which clients could ask, or over 32 KiB of them",
      // Node 24 offers the first certificate beside one with another kind of key, and OpenSSL takes RSA keys last.
      kind !== first?.kind &&
        first?.kind !== "rsa" &&
        `has another kind of key than ${first?.certFile}: an RSA key must be the first`,
    ];
    for (const name of names) taken.set(name, certFile);
    return messages.flatMap((message) => (message === false ? [] : [{ file: certFile, message }]));
  });
  if (problems.length > 0) throw new ConfigError(problems);
  return pairs;
}

/**
 * Returns the TLS settings for new connections.
 * @param served the current settings.
 * @throws ConfigError if they cannot be used.
 */
export function nextTls({ written, configuration, files }: Snapshot, served: ServerTls): ServerTls {
  const { tls } = configuration.server;
  try {
    if (tls.mode !== "selfSigned") return tlsFromFiles(tls, files.text, served?.ticketKey);
    // A self-signed certificate is kept for the life of the process: clients may have pinned it.
    return served && { ...served, clientCertificates: clientCertificatesOf(tls, files.text) };
  } catch (error) {
    if (written.server.tls.mode === tls.mode) throw error;
    return served; // Kept until the restart: the files of the old mode may no longer be configured.
  }
}

/** Checks with OpenSSL that the settings work together. @throws ConfigError that contains only OpenSSL's code. */
function validated(tls: NonNullable<ServerTls>, file: string): ServerTls {
  try {
    validateContext(tls);
    return tls;
  } catch (error) {
    const code = systemCode(error) ?? "unreadable";
    throw new ConfigError([{ file, message: `cannot be served (${code})` }]);
  }
}

/** Returns the settings for client certificates. @throws ConfigError if the authorities cannot be read. */
export function clientCertificatesOf(
  { clientCertificates }: Exclude<Tls, { readonly mode: "off" }>,
  textOf: ReadText,
): NonNullable<ServerTls>["clientCertificates"] {
  if (clientCertificates === undefined) return undefined;
  const { mode, caFile } = clientCertificates;
  return { authorities: readAuthorities(caFile, textOf), required: mode === "required" };
}

/** Returns the upstreams with the contents of their PEM files. @throws ConfigError with all problems of these files. */
export function upstreamsOf({ upstreams }: Configuration, textOf: ReadText): UpstreamOptions[] {
  return createAll(
    Object.entries(upstreams).map(([name, { tls, ...rest }]) => () => ({
      name,
      ...rest,
      tls: tls && upstreamTlsOf(tls, textOf),
    })),
  );
}

/** Everything that contains certificates. */
type Certified = Pick<TrafficChange, "tls" | "files">;

/** Returns the served certificates, that for clients which ask for none by name first. */
export function servedIn(tls: ServerTls): string[] {
  return tls === undefined ? [] : [tls, ...(tls.others ?? [])].map(({ cert }) => cert);
}

/** Returns when each served certificate ends, and the first certificate of each other file. */
export function certificateEndsOf({ tls, files }: Certified): CertificateEnd[] {
  const end = (
    of: CertificateEnd["of"],
    text: string | undefined,
    name?: string,
    endOf = earliestEnd,
  ): CertificateEnd[] => {
    if (text === undefined) return [];
    return [{ of, ...(name !== undefined && { name }), notAfter: endOf(text) }];
  };
  return [
    ...servedIn(tls).flatMap((cert, index) => {
      const [name] = index === 0 ? [] : serverNamesOf(cert);
      return end("tls_certificate", cert, name, notAfter);
    }),
    ...end("tls_client_ca", tls?.clientCertificates?.authorities),
    ...files.upstreams.flatMap(({ name, tls: used }) => [
      ...end("upstream_certificate", used?.cert, name),
      ...end("upstream_ca", used?.ca, name),
    ]),
  ];
}

/** @throws ConfigError if a certificate that is not valid now would replace a valid one. */
export function keepValidCertificates(before: Certified, next: TrafficChange, nowMs: number): void {
  const { server, upstreams } = next.configuration;
  const { clientCertificates } = server.tls.mode === "off" ? {} : server.tls;
  const [served, later] = [before.tls, next.tls];
  const files = certificateFilesOf(server.tls);
  const known = new Map(
    servedIn(served).flatMap((cert) => serverNamesOf(cert).map((name) => [name, cert])),
  );
  keepValid(
    [
      // In place of what clients got for the same name, wherever that stood; the first also without a name.
      ...servedIn(later).flatMap((next, index) => {
        const got = serverNamesOf(next).map((name) => forServerName(known, name));
        const replaced = new Set(index === 0 ? [served?.cert, ...got] : got);
        const file = files[index]?.certFile;
        return [...replaced].map((before) => ({ file, before, next, authorities: false }));
      }),
      {
        file: clientCertificates?.caFile,
        authorities: true,
        before: served?.clientCertificates?.authorities,
        next: later?.clientCertificates?.authorities,
      },
      ...next.files.upstreams.flatMap(({ name, tls }) => {
        const written = upstreams[name]?.tls;
        const used = before.files.upstreams.find((each) => each.name === name)?.tls;
        return [
          { file: written?.certFile, before: used?.cert, next: tls?.cert, authorities: false },
          { file: written?.caFile, before: used?.ca, next: tls?.ca, authorities: true },
        ];
      }),
    ],
    nowMs,
  );
}

type WrittenUpstreamTls = NonNullable<Configuration["upstreams"][string]["tls"]>;

function upstreamTlsOf(
  { caFile, certFile, keyFile, serverName }: WrittenUpstreamTls,
  textOf: ReadText,
): UpstreamOptions["tls"] {
  const [ca, pair] = createAll([
    () => (caFile === undefined ? undefined : readAuthorities(caFile, textOf)),
    () =>
      certFile === undefined || keyFile === undefined
        ? undefined
        : readCertificate(certFile, keyFile, textOf),
  ]);
  return { ca, cert: pair?.cert, key: pair?.key, serverName };
}

/** What gates need from files, as plain data for other threads. */
export interface GateFiles {
  /** The upstreams of the configuration, with the contents of their files. */
  readonly upstreams: readonly UpstreamOptions[];
  /** The key files of trusted issuers as read. A file that is not among them is read when a gate is opened. */
  readonly trustedKeyFiles: TrustedKeyFiles;
  /** The picture on the pages for people, as a data URL. */
  readonly logo: string | undefined;
  readonly apiKeys: ApiKeySet;
}

/**
 * @param apiKeys the keys of all stores.
 * @throws ConfigError if one of the files cannot be used.
 */
export function gateFilesOf(
  configuration: Configuration,
  files: SnapshotFiles,
  apiKeys: ApiKeySet,
): GateFiles {
  return {
    upstreams: upstreamsOf(configuration, files.text),
    trustedKeyFiles: trustedKeyFilesOf(configuration, files),
    logo: logoOf(configuration, files),
    apiKeys,
  };
}

/** How pictures begin that every browser shows, by their type. */
const PICTURES: Readonly<Record<string, RegExp>> = {
  "image/png": /^\x89PNG\r\n/,
  "image/jpeg": /^\xff\xd8\xff/,
  "image/webp": /^RIFF[^]{4}WEBP/,
  "image/svg+xml": /^(?:\xef\xbb\xbf)?\s{0,99}<(?:svg|\?xml|!--)/,
};

/** @throws ConfigError if the file is no picture. */
export function logoOf({ browser }: Configuration, files: SnapshotFiles): string | undefined {
  const { page = "off" } = browser ?? {};
  if (page === "off" || page.logo === undefined) return undefined;
  const { bytes } = files.content(page.logo);
  const beginning = Buffer.from(bytes.subarray(0, 128)).toString("latin1");
  const type = Object.keys(PICTURES).find((each) => PICTURES[each]?.test(beginning));
  if (type !== undefined) return `data:${type};base64,${Buffer.from(bytes).toString("base64")}`;
  throw new ConfigError([{ file: page.logo, message: "is no picture: SVG, PNG, JPEG or WebP" }]);
}

function trustedKeyFilesOf({ tokens }: Configuration, files: SnapshotFiles): TrustedKeyFiles {
  const paths = tokens.trusted
    .filter(isKeyed)
    .flatMap(({ jwks }) => ("file" in jwks ? [jwks.file] : []));
  return new Map(
    paths.map((path) => {
      const { text, fingerprint } = files.content(path, unreadable);
      return [path, { path, text, fingerprint }];
    }),
  );
}

/** Returns a reader for the users files of a snapshot. */
export function usersFilesIn(files: SnapshotFiles): FileReader {
  return (path) => files.content(path, (why) => `the users file cannot be read: ${why}`);
}

/** Reads the revocation file of a snapshot; undefined if there is none. @throws ConfigError */
export function revocationFileIn(
  { tokens }: Configuration,
  files: SnapshotFiles,
): FileContent | undefined {
  const { file } = tokens.revocation;
  return file === undefined
    ? undefined
    : files.content(file, (why) => `the revocation file cannot be read: ${why}`);
}

/**
 * Calls all makers in order, even if some throw a `ConfigError`. Returns their results, or throws one `ConfigError`
 * with all problems.
 */
export function createAll<Made extends unknown[]>(
  makers: readonly [...{ [At in keyof Made]: () => Made[At] }],
): Made;
export function createAll(makers: readonly (() => unknown)[]): unknown[] {
  const made: unknown[] = [];
  const problems: ConfigProblem[] = [];
  for (const make of makers) {
    try {
      made.push(make());
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return made;
}
