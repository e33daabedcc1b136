import { existsSync } from "node:fs";
import { get } from "node:http";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  type ConfigurationFlagValues,
  configurationSources,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT, type Terminal, UsageError } from "./command.ts";

const TIMEOUT_MS = 3_000;
const DEFAULT_URL = "http://127.0.0.1:9464/readyz";

export const healthcheck: Command = {
  help: `Usage: sallyport healthcheck [options]

Asks /readyz of the admin listener, for 3 seconds at most: exit code 0 when it is ready, 1 when it is
not. The port is that of admin.listen; without a configuration file, 9464 on 127.0.0.1 is asked.

${CONFIGURATION_HELP}
      --url URL         asks there and reads no configuration
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, { ...CONFIGURATION_FLAGS, url: { type: "string" } });
    const url = flags.url === undefined ? await configuredUrl(flags, terminal) : given(flags.url);
    const answer = await statusOf(url);
    if (answer === 200) {
      terminal.out("ready\n");
      return EXIT.done;
    }
    terminal.err(`sallyport healthcheck: ${url.href} says ${answer}\n`);
    return EXIT.failed;
  },
};

function given(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol !== "http:") throw new UsageError("--url wants an http URL");
  return url;
}

/** The configured listener as it is reached from its own machine. Throws `ConfigError` for a bad configuration. */
async function configuredUrl(flags: ConfigurationFlagValues, terminal: Terminal): Promise<URL> {
  const sources = configurationSources(flags, terminal);
  const named = flags.config !== undefined || Boolean(terminal.env["SALLYPORT_CONFIG"]);
  if (!named && !existsSync(sources.file)) return new URL(DEFAULT_URL);
  // Loaded late: a check without a configuration does not pay for the libraries that read one.
  const { loadConfiguration } = await import("../config/load.ts");
  const { admin } = loadConfiguration(sources).configuration;
  if (admin === "off") throw new Error("admin is off: there is nothing to ask");
  const { host, port } = admin.listen;
  const url = new URL(DEFAULT_URL);
  url.hostname = reachable(host);
  url.port = String(port);
  return url;
}

/** An address that stands for all of the machine's is reached on the loopback. */
function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

/** The status of the answer, or a word on why there is none. */
async function statusOf(url: URL): Promise<number | string> {
  const { promise, resolve } = Promise.withResolvers<number | string>();
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const asked = get(url, { agent: false, signal }, (response) => {
    response.destroy();
    resolve(response.statusCode ?? 0);
  });
  asked.on("error", (error) => {
    resolve(signal.aborted ? `nothing within ${TIMEOUT_MS} ms` : reasonOf(error));
  });
  return promise;
}

function reasonOf(error: Error): string {
  return "code" in error ? String(error.code) : error.message;
}
