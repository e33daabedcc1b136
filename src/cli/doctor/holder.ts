import { once } from "node:events";
import type { IncomingMessage, RequestOptions } from "node:http";
import { get as getByHttps } from "node:https";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import { get } from "../../lib/node-http.ts";
import { codeOf } from "./finding.ts";

export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Who has a port: nobody, a Sallyport, another program, or it cannot be had for the reason that the system's code gives. */
export type Holder =
  | { readonly kind: "nobody" | "sallyport" | "other" }
  | { readonly kind: "none can"; readonly code: string };

/** @param isSallyport asked when the port is taken. */
export async function holderOf(
  place: Place,
  isSallyport: () => boolean | Promise<boolean>,
): Promise<Holder> {
  const code = await bindingFault(place);
  if (code === undefined) return { kind: "nobody" };
  if (code !== "EADDRINUSE") return { kind: "none can", code };
  return { kind: (await isSallyport()) ? "sallyport" : "other" };
}

/** The system's code when the address cannot be had. It is given back at once. */
async function bindingFault({ host, port }: Place): Promise<string | undefined> {
  const probe = createServer();
  try {
    probe.listen({ host, port });
    await once(probe, "listening");
    return undefined;
  } catch (error) {
    return codeOf(error);
  } finally {
    probe.close();
  }
}

/** One of Sallyport's own endpoints, which asks for a token in every configuration. */
const PROTECTED = "/api/v1/version";

/** Whether a main listener answers as Sallyport's does when no token is shown. */
export async function servesAsSallyport(
  place: Place,
  tls: boolean,
  timeoutMs: number,
): Promise<boolean> {
  try {
    // Whose certificate it is does not matter: nothing is sent but the question.
    const asked = { ...options(place, PROTECTED, timeoutMs), rejectUnauthorized: false };
    const response = await answer((tls ? getByHttps : get)(asked));
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

/** Status of `/readyz`; a word when nobody answers as Sallyport does. */
export async function readiness(place: Place, timeoutMs: number): Promise<number | string> {
  if (place.port === 0) return "not known where";
  try {
    const response = await answer(get(options(place, "/readyz?verbose", timeoutMs)));
    const { statusCode = 0 } = response;
    const ours = /^draining: /m.test(await text(response));
    return ours && (statusCode === 200 || statusCode === 503) ? statusCode : `status ${statusCode}`;
  } catch (error) {
    return codeOf(error);
  }
}

const LOOPBACK = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

function options({ host, port }: Place, path: string, timeoutMs: number): RequestOptions {
  const signal = AbortSignal.timeout(timeoutMs);
  return { host: LOOPBACK.get(host) ?? host, port, path, agent: false, signal };
}

async function answer(asked: ReturnType<typeof get>): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  asked.on("response", resolve).on("error", reject);
  return promise;
}
