import { existsSync } from "node:fs";
import type { Configuration } from "../config/schema/configuration-schema.ts";
import { type ConfigurationFlagValues, configurationSources } from "./arguments.ts";
import { type Terminal, UsageError } from "./command.ts";

const DEFAULT = "http://127.0.0.1:9464";

/** The address of a running Sallyport, and the configuration that names it, if one was read. */
export interface AdminAddress {
  readonly url: URL;
  readonly configuration?: Configuration;
}

/**
 * @param path the path to request if the URL has none.
 * @throws UsageError if the text is not an http URL.
 */
export function givenAddress(text: string, path: string): AdminAddress {
  const url = URL.parse(text);
  if (url?.protocol !== "http:") throw new UsageError("--url needs an http URL");
  if (url.pathname === "/") url.pathname = path;
  return { url };
}

/**
 * Returns the URL at which programs on the same machine reach the configured admin listener; without a configuration
 * file, 127.0.0.1:9464.
 *
 * @throws ConfigError for an invalid configuration.
 */
export async function configuredAddress(
  flags: ConfigurationFlagValues,
  terminal: Terminal,
  path: string,
): Promise<AdminAddress> {
  const sources = configurationSources(flags, terminal);
  const named = flags.config !== undefined || Boolean(terminal.env["SALLYPORT_CONFIG"]);
  const url = new URL(path, DEFAULT);
  if (!named && !existsSync(sources.file)) return { url };
  // Loaded on demand, so that a health check without a configuration does not pay for the libraries that read one.
  const { loadConfiguration } = await import("../config/load.ts");
  const { configuration } = loadConfiguration(sources);
  const { admin } = configuration;
  if (admin === "off") throw new Error("admin is off, so there is no admin listener to connect to");
  url.hostname = reachable(admin.listen.host);
  url.port = String(admin.listen.port);
  return { url, configuration };
}

/** An unspecified address is reached on the loopback. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
