import type { Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { certificateConcerns } from "../../server/tls-certificate-concerns.ts";
import type { TargetOrigin } from "../../upstream/target.ts";
import { bad, codeOf, type Finding, good, warning } from "./finding.ts";
import { happens, type Reaching, within } from "./waiting.ts";

/** What can be done about a handshake that failed. */
export interface TlsHints {
  /** When nobody here knows its authority. */
  readonly authority: string;
  /** When it is for another name. */
  readonly name: string;
  /** When the server may want a certificate of the client. */
  readonly client: string;
}

/**
 * How long a server is waited for that has more to say, in milliseconds. In TLS 1.3 a client is through before the server
 * has looked at its certificate (RFC 8446 §2): a refusal comes after that. Most servers send a ticket, which ends the wait.
 */
const SECOND_THOUGHTS_MS = 1_000;

/**
 * Shakes hands on an open connection; nothing is sent, and the connection is used up.
 * @param label what each message begins with.
 */
export async function shakeHands(
  label: string,
  { tls, serverName }: TargetOrigin,
  socket: Socket,
  { timeoutMs, nowMs }: Reaching,
  hints: TlsHints,
): Promise<Finding[]> {
  const secure = connect({
    socket,
    // What is wrong with the certificate is told below.
    rejectUnauthorized: false,
    ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls?.key === undefined ? {} : { key: tls.key }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  });
  const refused = refusal(secure);
  try {
    await within(happens(secure, "secureConnect"), timeoutMs);
    const findings = certificateFindings(label, secure, nowMs, hints);
    const code = await refused;
    if (code === undefined) return findings;
    const message = `${label}: ends the connection after the handshake (${code})`;
    return [...findings, bad(message, hints.client)];
  } catch (error) {
    const code = codeOf(error);
    // An alert is TLS already (RFC 8446 §6).
    const hint = code.includes("ALERT") ? hints.client : "does this port speak TLS?";
    return [bad(`${label}: no TLS (${code})`, hint)];
  } finally {
    secure.destroy();
  }
}

/** The code with which the server refuses after the handshake; undefined when it does not. Never rejects. */
async function refusal(secure: TLSSocket): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  secure.once("secureConnect", () => {
    if (secure.getProtocol() !== "TLSv1.3") return resolve(undefined);
    const timer = setTimeout(() => resolve(undefined), SECOND_THOUGHTS_MS);
    secure
      .once("session", () => resolve(undefined))
      .once("error", (error) => resolve(codeOf(error)))
      .once("close", () => resolve("closed"));
    void promise.then(() => clearTimeout(timer));
  });
  return promise;
}

function certificateFindings(
  label: string,
  secure: TLSSocket,
  nowMs: number,
  hints: TlsHints,
): Finding[] {
  const certificate = secure.getPeerX509Certificate();
  const error: unknown = secure.authorizationError;
  const code = error instanceof Error ? codeOf(error) : String(error);
  const until = certificate?.validToDate.toISOString().slice(0, "2026-11-20".length);
  const concerns =
    certificate === undefined ? [] : certificateConcerns(certificate.toString(), nowMs);
  return [
    secure.authorized
      ? good(`${label}: TLS is trusted until ${until}, ${secure.getProtocol()}`)
      : bad(`${label}: its certificate is not trusted (${code})`, trustHint(code, hints)),
    ...concerns.map(({ urgent, message }) =>
      (urgent ? bad : warning)(`${label}: ${message}`, RENEW),
    ),
  ];
}

const RENEW = "renew it, or set the clock of this machine";

function trustHint(code: string, { authority, name }: TlsHints): string {
  switch (code) {
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return RENEW;
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return name;
    default:
      return authority;
  }
}
