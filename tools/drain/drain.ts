import { setTimeout as after } from "node:timers/promises";
import { formatDuration } from "../../src/lib/text/duration.ts";
import {
  type AdminAddress,
  adminAddress,
  askAdmin,
  membersIn,
} from "../../src/cli/admin-address.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  durationFlag,
  parseFlags,
} from "../../src/cli/arguments.ts";
import { type Command, EXIT } from "../../src/cli/command.ts";
import { withProgress } from "../../src/cli/terminal/progress.ts";
import { systemCode } from "../../src/lib/text/error-code.ts";

const PATH = "/-/drain";
/** Timeout of one request, in milliseconds. */
const REQUEST_TIMEOUT_MS = 3_000;
const POLL_EVERY_MS = 100;
/** The time to allow for a drain beyond the configured times, in milliseconds. */
const MARGIN_MS = 5_000;
/** The timeout for the default configuration, including the margin, in milliseconds. */
const DEFAULT_TIMEOUT_MS = 30_000;

export const drain: Command = {
  help: `Usage: sallyport drain [options]

Makes a running proxy drain, as SIGTERM does, and waits until no request is running. Exit code 0 if the
proxy is drained, 1 if it does not answer or takes longer. The process keeps running until SIGTERM, which
then ends it at once. Use it as the preStop hook. The command connects to the address of admin.listen;
without a configuration file, to 127.0.0.1:9464.

${CONFIGURATION_HELP}
      --url URL         connects there and reads no configuration, such as http://127.0.0.1:9464
      --timeout TIME    how long to wait, such as 30s (default: server.drain.delay plus
                        server.drain.timeout plus 5s)
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, {
      ...CONFIGURATION_FLAGS,
      url: { type: "string" },
      timeout: { type: "string" },
    });
    const { timeout } = flags;
    const chosen = timeout === undefined ? undefined : durationFlag("timeout", timeout);
    const address = await adminAddress(flags, terminal, PATH);
    const limitMs = chosen ?? expectedMs(address);
    const deadline = performance.now() + limitMs;
    let state = await stateFrom(address.url, "POST");
    const untilDrained = async (): Promise<void> => {
      while (state !== "drained") {
        if (performance.now() > deadline) throw new Error(`still ${state} after ${limitMs} ms`);
        await after(POLL_EVERY_MS);
        state = await stateOrEnd(address.url);
      }
    };
    await withProgress(terminal, () => progressOf(state, address), untilDrained);
    terminal.out("drained\n");
    return EXIT.done;
  },
};

function progressOf(state: string, { configuration }: AdminAddress): string {
  const drain = configuration?.server.drain;
  const times =
    drain === undefined
      ? "server.drain.delay, then server.drain.timeout"
      : `${formatDuration(drain.delay)} of server.drain.delay, then at most ${formatDuration(drain.timeout)}`;
  return `${state}: waiting for running requests (${times})`;
}

function expectedMs({ configuration }: AdminAddress): number {
  if (configuration === undefined) return DEFAULT_TIMEOUT_MS;
  const { delay, timeout } = configuration.server.drain;
  return delay + timeout + MARGIN_MS;
}

/**
 * If the proxy receives SIGTERM during the drain, it exits once drained: then a refused or reset connection is
 * expected.
 */
async function stateOrEnd(url: URL): Promise<string> {
  try {
    return await stateFrom(url, "GET");
  } catch (error) {
    if (GONE.includes(systemCode(error) ?? "")) return "drained";
    throw error;
  }
}

const GONE = ["ECONNREFUSED", "ECONNRESET"];

/** @throws the system's error if there is no response, or an error with the response if it is not a state. */
async function stateFrom(url: URL, method: "GET" | "POST"): Promise<string> {
  const late = `${url.href} did not answer within ${REQUEST_TIMEOUT_MS} ms`;
  const response = await askAdmin(url, { method, timeoutMs: REQUEST_TIMEOUT_MS, late });
  const { state }: Record<string, unknown> = await membersIn(response).catch(() => ({}));
  const { statusCode = 0 } = response;
  if (statusCode >= 300 || typeof state !== "string") {
    throw new Error(`${url.href} says ${statusCode}`);
  }
  return state;
}
