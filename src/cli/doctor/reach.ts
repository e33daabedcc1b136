import { lookup } from "node:dns/promises";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { certificateConcerns } from "../../server/tls-certificate-concerns.ts";
import type { TargetOrigin } from "../../upstream/target.ts";
import { bad, codeOf, type Finding, good, warning } from "./finding.ts";

export interface Reaching {
  /** Milliseconds, for each of looking up, connecting and shaking hands. */
  readonly timeoutMs: number;
  readonly nowMs: number;
}

/** Looks a target up, connects, and shakes hands where it is https. One finding for what fails first, or for each success. */
export async function reach(
  label: string,
  origin: TargetOrigin,
  reaching: Reaching,
): Promise<Finding[]> {
  const { hostname, socketPath } = origin;
  const findings: Finding[] = [];
  try {
    if (socketPath === undefined && isIP(hostname) === 0) {
      const { address } = await within(lookup(hostname), reaching.timeoutMs);
      findings.push(good(`${label}: ${hostname} is ${address}`));
    }
  } catch (error) {
    const hint = "look at the name, and at the DNS of this machine or pod";
    return [bad(`${label}: ${hostname} does not resolve (${codeOf(error)})`, hint)];
  }
  const socket = openTcp(origin);
  try {
    await ready(socket, "connect", reaching.timeoutMs);
    findings.push(good(`${label}: takes connections`));
    if (origin.protocol === "http:") return findings;
    return [...findings, ...(await shakeHands(label, origin, socket, reaching))];
  } catch (error) {
    const hint = "is the backend running, and does a firewall or NetworkPolicy let this through?";
    return [...findings, bad(`${label}: no connection (${codeOf(error)})`, hint)];
  } finally {
    socket.destroy();
  }
}

function openTcp({ hostname, port, socketPath }: TargetOrigin): Socket {
  return socketPath === undefined
    ? connectTcp({ host: hostname, port })
    : connectTcp({ path: socketPath });
}

/** @throws the system's error, or TimeoutError. */
async function ready(
  socket: Socket,
  event: "connect" | "secureConnect",
  timeoutMs: number,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once(event, () => resolve()).on("error", reject);
  await within(promise, timeoutMs);
}

async function shakeHands(
  label: string,
  { tls, serverName }: TargetOrigin,
  socket: Socket,
  { timeoutMs, nowMs }: Reaching,
): Promise<Finding[]> {
  const secure: TLSSocket = connectTls({
    socket,
    // What is wrong with the certificate is told below; nothing is sent.
    rejectUnauthorized: false,
    ...(tls?.ca === undefined ? {} : { ca: tls.ca }),
    ...(tls?.cert === undefined ? {} : { cert: tls.cert }),
    ...(tls?.key === undefined ? {} : { key: tls.key }),
    ...(serverName === undefined ? {} : { servername: serverName }),
  });
  try {
    await ready(secure, "secureConnect", timeoutMs);
    const certificate = secure.getPeerX509Certificate();
    const { authorized } = secure;
    const error: unknown = secure.authorizationError;
    const concerns =
      certificate === undefined ? [] : certificateConcerns(certificate.toString(), nowMs);
    return [
      authorized
        ? good(`${label}: TLS is trusted, ${secure.getProtocol()}`)
        : bad(`${label}: its certificate is not trusted (${codeText(error)})`, TRUST_HINT),
      ...concerns.map(({ urgent, message }) =>
        (urgent ? bad : warning)(`${label}: ${message}`, "renew it"),
      ),
    ];
  } catch (error) {
    return [bad(`${label}: no TLS (${codeOf(error)})`, "does this port speak TLS?")];
  } finally {
    secure.destroy();
  }
}

const TRUST_HINT = "name its authority in tls.caFile, and its name in tls.serverName";

function codeText(error: unknown): string {
  return error instanceof Error ? codeOf(error) : String(error);
}

/** @throws TimeoutError when the time is up. */
async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new DOMException("no answer in time", "TimeoutError")),
    timeoutMs,
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
