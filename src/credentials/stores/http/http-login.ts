import type { Agent } from "node:http";
import { askRemote, type RemoteAnswer } from "../../../lib/http/remote-request.ts";
import type { HttpSettings } from "./http-settings.ts";

/** Maximum size of a response body, in bytes. A name and a thousand groups fit. */
const LARGEST_BODY = 65_536;

type Credentials = { readonly username: string; readonly password: string };

/**
 * Submits a name and a password to another login. Follows no redirects, which could send the password to another
 * server.
 *
 * @throws RemoteError or the system's error.
 */
export async function askLogin(
  settings: HttpSettings,
  credentials: Credentials,
  agent: Agent,
  signal: AbortSignal,
): Promise<RemoteAnswer> {
  const body = bodyOf(settings, credentials);
  const headers = headersOf(settings, credentials);
  const question = { method: "POST", url: settings.url, headers, body } as const;
  return askRemote(question, { agent, signal, maxBytes: LARGEST_BODY });
}

function bodyOf({ format, fields }: HttpSettings, { username, password }: Credentials): string {
  const named = { [fields.username]: username, [fields.password]: password };
  if (format === "json") return JSON.stringify(named);
  return format === "form" ? new URLSearchParams(named).toString() : "";
}

function headersOf(
  { format }: HttpSettings,
  { username, password }: Credentials,
): Record<string, string> {
  const common = { accept: "application/json" };
  if (format === "json") return { ...common, "content-type": "application/json" };
  if (format === "form") return { ...common, "content-type": "application/x-www-form-urlencoded" };
  const pair = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
  return { ...common, authorization: `Basic ${pair}` };
}
