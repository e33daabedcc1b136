import type { Agent as HttpAgent, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { request } from "../../../lib/http/node-http.ts";
import { codeOrMessage } from "../../../lib/text/error-code.ts";
import { StoreUnavailable } from "../remote/store-unavailable.ts";
import type { HttpSettings } from "./http-store.ts";

/** The largest body that is read: a name and a thousand groups fit. */
const LARGEST_BODY = 65_536;

export interface HttpAnswer {
  readonly status: number;
  /** Empty unless the body is wanted. */
  readonly body: string;
}

type Credentials = { readonly username: string; readonly password: string };

/**
 * Submits a name and a password to another login. Follows no redirects, which could send the password to another
 * server.
 *
 * @param wanted whether the body of an answer with this status is wanted.
 * @throws StoreUnavailable or the system's error.
 */
export async function askLogin(
  settings: HttpSettings,
  credentials: Credentials,
  agent: HttpAgent,
  signal: AbortSignal,
  wanted: (status: number) => boolean,
): Promise<HttpAnswer> {
  const options: RequestOptions = { method: "POST", agent, signal, maxHeaderSize: 16_384 };
  const body = bodyOf(settings, credentials);
  const headers = headersOf(settings, credentials, body);
  try {
    return await exchange(settings.url, { ...options, headers }, body, wanted);
  } catch (error) {
    // The server closed an idle connection at the very moment it was reused.
    if (!(error instanceof StaleConnection)) throw error;
    return exchange(settings.url, { ...options, headers }, body, wanted);
  }
}

class StaleConnection extends StoreUnavailable {}

function bodyOf({ format, fields }: HttpSettings, { username, password }: Credentials): string {
  const named = { [fields.username]: username, [fields.password]: password };
  if (format === "json") return JSON.stringify(named);
  return format === "form" ? new URLSearchParams(named).toString() : "";
}

function headersOf(
  { format }: HttpSettings,
  { username, password }: Credentials,
  body: string,
): Record<string, string | number> {
  const common = { accept: "application/json", "content-length": Buffer.byteLength(body) };
  if (format === "json") return { ...common, "content-type": "application/json" };
  if (format === "form") return { ...common, "content-type": "application/x-www-form-urlencoded" };
  const pair = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
  return { ...common, authorization: `Basic ${pair}` };
}

async function exchange(
  url: string,
  options: RequestOptions,
  body: string,
  wanted: (status: number) => boolean,
): Promise<HttpAnswer> {
  const sent = requestTo(url, options);
  const answered = Promise.withResolvers<IncomingMessage>();
  sent.once("response", answered.resolve);
  sent.on("error", (error) =>
    answered.reject(
      sent.reusedSocket && codeOrMessage(error) === "ECONNRESET"
        ? new StaleConnection("the connection was closed", error)
        : error,
    ),
  );
  sent.end(body);
  const response = await answered.promise;
  const status = response.statusCode ?? 0;
  try {
    if (wanted(status)) return { status, body: await textOf(response) };
    // Node reads the rest of a small response, so that the connection can be reused.
    await textOf(response);
    return { status, body: "" };
  } catch (error) {
    sent.destroy();
    throw error;
  }
}

function requestTo(url: string, options: RequestOptions): ClientRequest {
  if (!url.startsWith("https:")) return request(url, options);
  return process.getBuiltinModule("node:https").request(url, options);
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > LARGEST_BODY) throw new StoreUnavailable(`an answer over ${LARGEST_BODY} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
