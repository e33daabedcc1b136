import { existsSync } from "node:fs";
import type { Configuration } from "../config/schema.ts";
import { type ConfigurationFlagValues, configurationSources } from "./arguments.ts";
import { type Terminal, UsageError } from "./command.ts";

const DEFAULT = "http://127.0.0.1:9464";

/** Where a running Sallyport is asked, and the configuration that says so where one was read. */
export interface AdminAddress {
  readonly url: URL;
  readonly configuration?: Configuration;
}

/**
 * @param path what is asked where the URL names an origin alone.
 * @throws UsageError for what is no http URL.
 */
export function givenAddress(text: string, path: string): AdminAddress {
  const url = URL.parse(text);
  if (url?.protocol !== "http:") throw new UsageError("--url wants an http URL");
  if (url.pathname === "/") url.pathname = path;
  return { url };
}

/**
 * The configured admin listener as it is reached from its own machine; without a configuration file, 9464 on 127.0.0.1.
 * @throws ConfigError for a bad configuration.
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
  // Loaded late: a check without a configuration does not pay for the libraries that read one.
  const { loadConfiguration } = await import("../config/load.ts");
  const { configuration } = loadConfiguration(sources);
  const { admin } = configuration;
  if (admin === "off") throw new Error("admin is off: there is nothing to ask");
  url.hostname = reachable(admin.listen.host);
  url.port = String(admin.listen.port);
  return { url, configuration };
}

/** An address that stands for all of the machine's is reached on the loopback. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
