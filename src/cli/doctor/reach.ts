import { lookup } from "node:dns/promises";
import { connect, isIP, type Socket } from "node:net";
import { remoteFailure } from "../../lib/text/error-code.ts";
import type { TargetOrigin } from "../../upstream/pool/target-origin.ts";
import { bad, eventOf, type Finding, good, within } from "./finding.ts";
import { handshake, type HandshakeOptions } from "./tls.ts";

/**
 * Resolves a target, connects, and performs the TLS handshake if the scheme is https. Returns one finding for each
 * step, up to the first failure.
 *
 * @param label the beginning of each message.
 */
export async function reach(
  label: string,
  origin: TargetOrigin,
  options: HandshakeOptions,
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
  const socket = openTcp(origin);
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

function openTcp({ hostname, port, socketPath }: TargetOrigin): Socket {
  return socketPath === undefined
    ? connect({ host: hostname, port })
    : connect({ path: socketPath });
}
