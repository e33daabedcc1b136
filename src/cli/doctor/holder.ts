import { once } from "node:events";
import type { IncomingMessage, RequestOptions } from "node:http";
import { get as getByHttps } from "node:https";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import { get } from "../../lib/http/node-http.ts";
import { remoteFailure } from "../../lib/text/remote-error.ts";

export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * What listens on a port: nothing, a Sallyport, or another program. `none can` means that the address is unavailable,
 * with the system's code.
 */
export type Holder =
  | { readonly kind: "nobody" | "sallyport" | "other" }
  | { readonly kind: "none can"; readonly code: string };

/** @param isSallyport called if the port is taken. */
export async function holderOf(
  address: ListenAddress,
  isSallyport: () => boolean | Promise<boolean>,
): Promise<Holder> {
  const code = await bindError(address);
  if (code === undefined) return { kind: "nobody" };
  if (code !== "EADDRINUSE") return { kind: "none can", code };
  return { kind: (await isSallyport()) ? "sallyport" : "other" };
}

/** Returns the system's code if the address is not available. Otherwise releases the address at once. */
async function bindError({ host, port }: ListenAddress): Promise<string | undefined> {
  const probe = createServer();
  try {
    probe.listen({ host, port });
    await once(probe, "listening");
    return undefined;
  } catch (error) {
    return remoteFailure(error);
  } finally {
    probe.close();
  }
}

/** One of Sallyport's own endpoints, which requires a token in every configuration. */
const PROTECTED = "/api/v1/version";

/** Reports whether a main listener responds to a request without a token as Sallyport does. */
export async function servesAsSallyport(
  address: ListenAddress,
  tls: boolean,
  timeoutMs: number,
): Promise<boolean> {
  try {
    // The certificate does not matter: the request contains no secret.
    const requested = { ...options(address, PROTECTED, timeoutMs), rejectUnauthorized: false };
    const response = await answer((tls ? getByHttps : get)(requested));
    const envelope: unknown = JSON.parse(await text(response));
    const challenge = response.headers["www-authenticate"]?.startsWith("Bearer ") === true;
    return response.statusCode === 401 && challenge && isEnvelope(envelope);
  } catch {
    return false;
  }
}

function isEnvelope(answered: unknown): boolean {
  if (typeof answered !== "object" || answered === null) return false;
  return "id" in answered && typeof answered.id === "number" && "success" in answered;
}

/** Returns the status of `/readyz`, or the reason as text if no Sallyport responds. */
export async function readiness(
  address: ListenAddress,
  timeoutMs: number,
): Promise<number | string> {
  if (address.port === 0) return "its port is unknown";
  try {
    const response = await answer(get(options(address, "/readyz?verbose", timeoutMs)));
    const { statusCode = 0 } = response;
    const ours = /^draining: /m.test(await text(response));
    return ours && (statusCode === 200 || statusCode === 503) ? statusCode : `status ${statusCode}`;
  } catch (error) {
    return remoteFailure(error);
  }
}

const LOOPBACK = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

function options({ host, port }: ListenAddress, path: string, timeoutMs: number): RequestOptions {
  const signal = AbortSignal.timeout(timeoutMs);
  return { host: LOOPBACK.get(host) ?? host, port, path, agent: false, signal };
}

async function answer(requested: ReturnType<typeof get>): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  requested.on("response", resolve).on("error", reject);
  return promise;
}
