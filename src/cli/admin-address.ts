import { existsSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import type { RequestOptions } from "node:https";
import { text } from "node:stream/consumers";
import type { Configuration } from "../config/configuration.ts";
import { request } from "../lib/http/node-http.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";
import { type ConfigurationFlagValues, configurationSources } from "./arguments.ts";
import { type Terminal, UsageError } from "./command.ts";

const DEFAULT = "http://127.0.0.1:9464";

/** The address of a running Sallyport, and the configuration that names it, if one was read. */
export interface AdminAddress {
  readonly url: URL;
  readonly configuration?: Configuration;
}

/**
 * Returns the URL of a page of the admin listener: that of `--url`, else the one at which programs on the same machine
 * reach the configured listener; without a configuration file, at 127.0.0.1:9464.
 *
 * @param path the page, unless `--url` names one.
 * @throws UsageError if `--url` is not an http URL, ConfigError for an invalid configuration.
 */
export async function adminAddress(
  flags: ConfigurationFlagValues & { readonly url?: string | undefined },
  terminal: Terminal,
  path: string,
): Promise<AdminAddress> {
  if (flags.url !== undefined) return { url: givenUrl(flags.url, path) };
  const sources = configurationSources(flags, terminal);
  const named = flags.config !== undefined || Boolean(terminal.env["SALLYPORT_CONFIG"]);
  const url = new URL(path, DEFAULT);
  if (!named && !existsSync(sources.file)) return { url };
  // Loaded on demand, so that a health check without a configuration does not pay for the libraries that read one.
  const { loadConfiguration } = await import("../config/load.ts");
  const { configuration } = loadConfiguration(sources);
  const configured = configuredUrl(configuration, path);
  if (configured === undefined) {
    throw new Error("admin is off, so there is no admin listener to connect to");
  }
  return { url: configured, configuration };
}

/** Returns the URL of a page at the configured address; undefined if the admin listener is off. */
export function configuredUrl({ admin }: Configuration, path: string): URL | undefined {
  return admin === "off" ? undefined : urlAt(admin.listen, path);
}

/** Returns the URL of a page of a listener, as programs on the same machine reach it. */
export function urlAt(
  { host, port }: Configuration["server"]["listen"],
  path: string,
  scheme = "http",
): URL {
  return new URL(path, `${scheme}://${reachable(host)}:${port}`);
}

function givenUrl(text: string, path: string): URL {
  const url = URL.parse(text);
  if (url?.protocol !== "http:") throw new UsageError("--url needs an http URL");
  if (url.pathname === "/") url.pathname = path;
  return url;
}

/** An unspecified address is reached on the loopback. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

/** A request to a listener of a Sallyport on this machine. */
export interface AdminRequest extends Pick<RequestOptions, "rejectUnauthorized"> {
  readonly method?: "GET" | "POST";
  /** Sends it; default: over plain HTTP. */
  readonly by?: typeof request;
  readonly headers?: Readonly<Record<string, string>>;
  /** Timeout, in milliseconds. */
  readonly timeoutMs: number;
  /** The message of the error if there is no response in time. */
  readonly late: string;
}

/** Returns the head of the response. @throws the system's error if there is no response. */
export async function askAdmin(
  url: URL,
  { by = request, timeoutMs, late, ...options }: AdminRequest,
): Promise<IncomingMessage> {
  const signal = AbortSignal.timeout(timeoutMs);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const sent = by(url, { ...options, agent: false, signal }, resolve);
  sent.on("error", (error) => reject(signal.aborted ? new Error(late) : error));
  sent.end();
  return promise;
}

/** Returns the members of a response with a JSON object; none if it is something else. */
export async function membersIn(response: IncomingMessage): Promise<Record<string, unknown>> {
  const body = await text(response);
  try {
    const value: unknown = JSON.parse(body);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
