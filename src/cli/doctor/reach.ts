import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { remoteFailure } from "../../lib/text/error-code.ts";
import { certificateWarnings } from "../../server/tls/certificate.ts";
import { type TargetOrigin, tlsOptionsOf } from "../../upstream/pool/target-origin.ts";
import type { UpstreamOptions } from "../../upstream/pool/upstreams.ts";
import { bad, eventOf, type Finding, good, type ReachOptions, warning, within } from "./finding.ts";

/** Advice on a failed handshake. */
export interface TlsHints {
  /** The authority of the certificate is unknown. */
  readonly authority: string;
  /** The certificate is for another name. */
  readonly name: string;
  /** The server may require a client certificate. */
  readonly client: string;
}

interface ReachingOptions extends ReachOptions {
  readonly hints: TlsHints;
  /** The protocol of the upstream, which determines the ALPN offer; without it, ALPN is not used. */
  readonly protocol?: UpstreamOptions["protocol"] | undefined;
}

/**
 * Resolves a target, connects, and performs the TLS handshake if the scheme is https. Returns one finding for each
 * step, up to the first failure.
 *
 * @param label the beginning of each message.
 */
export async function reach(
  label: string,
  origin: TargetOrigin,
  options: ReachingOptions,
): Promise<Finding[]> {
  const { hostname, socketPath } = origin;
  const { timeoutMs } = options;
  const findings: Finding[] = [];
  try {
    if (socketPath === undefined && isIP(hostname) === 0) {
      const { address } = await within(lookup(hostname), timeoutMs);
      findings.push(good(`${label}: ${hostname} is ${address}`));
    }
  } catch (error) {
    const hint = "check the name, and the DNS of this machine or pod";
    return [bad(`${label}: ${hostname} does not resolve (${remoteFailure(error)})`, hint)];
  }
  const socket = connect(
    socketPath === undefined ? { host: hostname, port: origin.port } : { path: socketPath },
  );
  try {
    await within(eventOf(socket, "connect"), timeoutMs);
    findings.push(good(`${label}: accepts connections`));
    if (origin.protocol === "http:") return findings;
    return [...findings, ...(await handshake(label, origin, socket, options))];
  } catch (error) {
    const hint = "is the backend running, and does a firewall or NetworkPolicy let this through?";
    return [...findings, bad(`${label}: no connection (${remoteFailure(error)})`, hint)];
  } finally {
    socket.destroy();
  }
}

/**
 * Maximum wait for a late refusal by the server, in milliseconds. A TLS 1.3 client completes the handshake before the
 * server has checked the client certificate (RFC 8446 §2), so a refusal arrives afterwards. Most servers send a session
 * ticket, which ends the wait.
 */
const LATE_REFUSAL_MS = 1_000;

/**
 * Performs a TLS handshake on an open connection, without sending data. The connection cannot be used afterwards.
 *
 * @param label the beginning of each message.
 */
async function handshake(
  label: string,
  origin: TargetOrigin,
  socket: Socket,
  { timeoutMs, nowMs, hints, protocol }: ReachingOptions,
): Promise<Finding[]> {
  const offered = OFFERED[protocol ?? "http1"];
  const secure = connectTls({
    socket,
    // Whose certificate an address without a name must have.
    host: origin.hostname,
    ...(protocol === undefined ? {} : { ALPNProtocols: [...offered] }),
    // Problems with the certificate are reported below.
    rejectUnauthorized: false,
    ...tlsOptionsOf(origin),
  });
  const refused = refusal(secure);
  try {
    await within(eventOf(secure, "secureConnect"), timeoutMs);
    const findings = certificateFindings(label, secure, nowMs, hints);
    const code = await refused;
    if (code === undefined) return [...findings, ...protocolFindings(label, secure, protocol)];
    const message = `${label}: ends the connection after the handshake (${code})`;
    return [...findings, bad(message, hints.client)];
  } catch (error) {
    const code = remoteFailure(error);
    if (code.includes("NO_APPLICATION_PROTOCOL")) {
      return [bad(`${label}: accepts none of ${offered.join(", ")} by ALPN`, ALPN_HINT)];
    }
    // An alert is part of TLS (RFC 8446 §6).
    const hint = code.includes("ALERT") ? hints.client : "does this port speak TLS?";
    return [bad(`${label}: no TLS (${code})`, hint)];
  } finally {
    secure.destroy();
  }
}

/** Returns the code if the server refuses after the handshake, else undefined. Never rejects. */
async function refusal(secure: TLSSocket): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  secure.once("secureConnect", () => {
    if (secure.getProtocol() !== "TLSv1.3") return resolve(undefined);
    const timer = setTimeout(() => resolve(undefined), LATE_REFUSAL_MS);
    secure
      .once("session", () => resolve(undefined))
      .once("error", (error) => resolve(remoteFailure(error)))
      .once("close", () => resolve("closed"));
    void promise.then(() => clearTimeout(timer));
  });
  return promise;
}

const ALPN_HINT =
  "set the upstream's protocol to auto, which uses the protocol that TLS negotiates";

/** The ALPN protocols that each `protocol` of an upstream offers. */
const OFFERED = {
  http1: ["http/1.1"],
  http2: ["h2"],
  h2c: [],
  auto: ["h2", "http/1.1"],
} as const satisfies Readonly<Record<UpstreamOptions["protocol"], readonly string[]>>;

/** Reports the protocol that the backend selected with ALPN, if HTTP/2 was offered. */
function protocolFindings(
  label: string,
  { alpnProtocol }: TLSSocket,
  protocol: UpstreamOptions["protocol"] | undefined,
): Finding[] {
  if (protocol !== "http2" && protocol !== "auto") return [];
  const speaks = alpnProtocol === "h2" ? "HTTP/2" : "HTTP/1.1";
  if (protocol === "auto" || alpnProtocol === "h2") {
    return [good(`${label}: speaks ${speaks} (ALPN: ${alpnProtocol || "none"})`)];
  }
  return [bad(`${label}: does not speak HTTP/2 (ALPN: ${alpnProtocol || "none"})`, ALPN_HINT)];
}

function certificateFindings(
  label: string,
  secure: TLSSocket,
  nowMs: number,
  hints: TlsHints,
): Finding[] {
  const certificate = secure.getPeerX509Certificate();
  const error: unknown = secure.authorizationError;
  const code = error instanceof Error ? remoteFailure(error) : String(error);
  const until = certificate?.validToDate.toISOString().slice(0, "2026-11-20".length);
  const warnings =
    certificate === undefined ? [] : certificateWarnings(certificate.toString(), nowMs);
  return [
    secure.authorized
      ? good(`${label}: TLS is trusted until ${until}, ${secure.getProtocol()}`)
      : bad(`${label}: its certificate is not trusted (${code})`, trustHint(code, hints)),
    ...warnings.map(({ urgent, message }) =>
      (urgent ? bad : warning)(`${label}: ${message}`, RENEW),
    ),
  ];
}

const RENEW = "renew it, or set the clock of this machine";

function trustHint(code: string, { authority, name }: TlsHints): string {
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") return RENEW;
  return code === "ERR_TLS_CERT_ALTNAME_INVALID" ? name : authority;
}
