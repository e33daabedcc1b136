import { setTimeout as after } from "node:timers/promises";
import type { Status } from "../../core/status.ts";
import { adminAddress } from "../admin-address.ts";
import { CONFIGURATION_FLAGS, CONFIGURATION_HELP, durationFlag, parseFlags } from "../arguments.ts";
import { type Command, EXIT, type Terminal } from "../command.ts";
import { showsUnicode } from "../terminal/marks.ts";
import { fetchStatus } from "./fetch-status.ts";
import { type ScreenOptions, statusLines } from "./screen.ts";

const PATH = "/-/status";
const INTERVAL_MS = 2_000;
const LEAST_INTERVAL_MS = 500;
const WIDTH = 160;
const ROWS = 50;

export const top: Command = {
  help: `Usage: sallyport top [options]

Shows the status of a running proxy: routes with their rates, upstreams, logins and refusals of the last
30 minutes, keys, issuers, and the last refusals. On a terminal it is updated until Ctrl-C; elsewhere it is
printed once. The page /-/ of the admin listener shows the same in a browser.

      --url URL         connects there and reads no configuration, such as http://127.0.0.1:9464
      --interval TIME   time between updates (default: 2s)
      --once            prints the status once; exit code 1 if the proxy is not ready
${CONFIGURATION_HELP}
  -h, --help            this text`,
  async run(args, terminal) {
    const text = { type: "string" } as const;
    const flags = parseFlags(args, {
      ...CONFIGURATION_FLAGS,
      url: text,
      interval: text,
      once: { type: "boolean" },
    });
    const { url } = await adminAddress(flags, terminal, PATH);
    const everyMs =
      flags.interval === undefined
        ? INTERVAL_MS
        : durationFlag("interval", flags.interval, LEAST_INTERVAL_MS);
    if (flags.once === true || !process.stdout.isTTY) {
      const status = await fetchStatus(url);
      terminal.out(`${statusLines(status, undefined, optionsFor(terminal)).join("\n")}\n`);
      return status.ready ? EXIT.done : EXIT.failed;
    }
    await watch(url, everyMs, terminal);
    return EXIT.done;
  },
};

function optionsFor({ env }: Terminal): ScreenOptions {
  const { isTTY: onTerminal, columns } = process.stdout;
  return {
    // Some terminals do not report their size.
    width: onTerminal && columns > 0 ? columns : WIDTH,
    color: onTerminal && (env["NO_COLOR"] ?? "") === "",
    unicode: showsUnicode(env),
  };
}

const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const REST_OF_LINE = "\u001b[K";
const REST_OF_SCREEN = "\u001b[J";

/** Draws on the alternate screen until SIGINT, SIGTERM or SIGHUP. Keeps trying if the proxy does not answer. */
async function watch(url: URL, everyMs: number, terminal: Terminal): Promise<void> {
  const interrupted = new AbortController();
  const { signal } = interrupted;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(name, () => interrupted.abort());
  }
  const wait = (): Promise<unknown> => after(everyMs, undefined, { signal }).catch(() => undefined);
  let before = await fetchStatus(url);
  let latest: Status | undefined = before;
  terminal.out(ENTER);
  try {
    while (!signal.aborted) {
      const options = optionsFor(terminal);
      const lines =
        latest === undefined
          ? [`${url.href} does not answer; trying again`]
          : statusLines(latest, before === latest ? undefined : before, options);
      const shown = lines
        .slice(0, (process.stdout.rows || ROWS) - 1)
        .map((line) => `${line}${REST_OF_LINE}`);
      terminal.out(`${HOME}${shown.join("\r\n")}${REST_OF_SCREEN}`);
      await wait();
      before = latest ?? before;
      latest = await fetchStatus(url).catch(() => undefined);
    }
  } finally {
    terminal.out(LEAVE);
  }
}
