import { setTimeout as after } from "node:timers/promises";
import { styleText } from "node:util";
import type { Status } from "../../src/core/status.ts";
import { adminAddress, askAdmin, membersIn } from "../../src/cli/admin-address.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  durationFlag,
  parseFlags,
} from "../../src/cli/arguments.ts";
import { type Command, EXIT, type Terminal, UsageError } from "../../src/cli/command.ts";
import { formatFrom, showsUnicode } from "../../src/cli/terminal/format.ts";
import { printable } from "../../src/lib/text/printable.ts";
import {
  type Cell,
  factsOf,
  health,
  type Section,
  sectionsOf,
  type Series,
  type Table,
  tableOf,
} from "../../src/server/admin/status/sections.ts";
import { amount, relative } from "../../src/server/admin/status/words.ts";

const TIMEOUT_MS = 5_000;

/**
 * Fetches the status of a running proxy.
 * @throws Error if there is no response, a refusal, or a response that is not a status; the message says which.
 */
async function fetchStatus(url: URL): Promise<Status> {
  const late = `${url.href} did not answer within ${TIMEOUT_MS / 1000} s`;
  const response = await askAdmin(url, { timeoutMs: TIMEOUT_MS, late });
  const body: Record<string, unknown> = await membersIn(response).catch(() => ({}));
  const { statusCode } = response;
  if (statusCode === 200 && isStatus(body)) return body;
  const why = typeof body["message"] === "string" ? `: ${body["message"]}` : ", but no status";
  throw new Error(`${url.href} says ${statusCode}${why}`);
}

const LISTS = ["routes", "upstreams", "keys", "minutes", "refusals"];

function isStatus(body: Record<string, unknown>): body is Record<string, unknown> & Status {
  return LISTS.every((name) => Array.isArray(body[name]));
}

/** Properties of the terminal. */
export interface ScreenOptions {
  /** Longer lines are cut. */
  readonly width: number;
  readonly color: boolean;
  /** Whether bars are drawn with Unicode blocks. */
  readonly unicode: boolean;
}

const STYLES = {
  good: "green",
  warn: "yellow",
  bad: "red",
  soft: "dim",
  plain: undefined,
} as const;

/** Renders a status as lines. Rates are computed from `before`, an earlier status; without it, none are shown. */
export function statusLines(status: Status, before: Status | undefined, options: ScreenOptions) {
  const sections = sectionsOf(status, before);
  const { routes, upstreams, dependencies, logins, reasons, keys, refusals } = sections;
  const blocks = [
    headLines(status, before),
    tableLines(routes.content),
    tableLines(upstreams.content),
    tableLines(dependencies.content),
    tableLines(bars(logins, options.unicode)),
    tableLines(bars(reasons, options.unicode)),
    tableLines(keys.content),
    tableLines(refusals.content),
  ].filter((lines) => lines.length > 0);
  return blocks
    .flatMap((lines, index) => (index === 0 ? lines : [[], ...lines]))
    .map((cells) => drawn(cells, options));
}

function headLines(status: Status, before: Status | undefined): Cell[][] {
  const { version, host, now, reload } = status;
  const facts = factsOf(status, before);
  const words = (...shown: (typeof facts)[keyof typeof facts][]): string =>
    shown.map(([, , , short]) => short).join("  ");
  const lines: Cell[][] = [
    [
      { text: `Sallyport ${version}  ${host}  ` },
      health(status),
      { text: `  ${words(facts.up, facts.workers, facts.memory)}` },
    ],
    [{ text: words(facts.requests, facts.inFlight, facts.tokens) }],
  ];
  if (reload === undefined) return lines;
  const at = relative(reload.at, now);
  const last: Cell = reload.successful
    ? { text: `reloaded ${at}: ${reload.changes.length} values changed` }
    : { text: `reload failed ${at}: ${reload.problems[0] ?? "see the log"}`, tone: "bad" };
  return [...lines, [last]];
}

const BLOCKS = " ▁▂▃▄▅▆▇█";
const ASCII_BLOCKS = " .:-=+*#@";

/** Draws each series as a line of blocks, one for each minute; the highest is a full one. */
function bars({ title, link, note, content }: Section<readonly Series[]>, unicode: boolean): Table {
  const blocks = unicode ? BLOCKS : ASCII_BLOCKS;
  const barOf = (counts: readonly number[]): string => {
    const highest = Math.max(...counts, 1);
    return counts.map((count) => blocks[Math.ceil((count / highest) * 8)] ?? " ").join("");
  };
  return tableOf(content, {
    [link ?? title]: ({ word }) => word,
    [note]: ({ counts, tone }) => ({ text: barOf(counts), tone }),
    ">Total": ({ total }) => amount(total),
  });
}

const LONGEST_CELL = 60;

/** Aligns rows under their titles. Without rows, returns no lines. */
function tableLines({ columns, rows }: Table): Cell[][] {
  if (rows.length === 0) return [];
  const aligned = columns.flatMap(({ short: title, kind }, column) => {
    const below = rows.flatMap((row) => row.slice(column, column + 1));
    // Rates, for example, need an earlier status.
    if (title === "" || below.every(({ text }) => text === "")) return [];
    const cells = [{ text: title, tone: "soft" } as const, ...below].map(
      ({ text, short = text, tone }: Cell) => ({ text: shortened(printable(short)), tone }),
    );
    const width = Math.max(...cells.map(({ text }) => text.length));
    const pad = (text: string) => (kind === "number" ? text.padStart(width) : text.padEnd(width));
    return [cells.map(({ text, tone }) => ({ text: `${pad(text)}  `, tone }))];
  });
  return ["titles", ...rows].map((_, line) =>
    aligned.flatMap((cells) => cells.slice(line, line + 1)),
  );
}

function shortened(text: string): string {
  return text.length > LONGEST_CELL ? `${text.slice(0, LONGEST_CELL - 3)}...` : text;
}

/** Cuts a line to the width of the terminal, and applies the styles. */
function drawn(cells: readonly Cell[], { width, color }: ScreenOptions): string {
  let left = width;
  let line = "";
  for (const { text, tone = "plain" } of cells) {
    const part = printable(text).slice(0, left);
    const style = STYLES[tone];
    left -= part.length;
    line += color && style !== undefined ? styleText(style, part, { validateStream: false }) : part;
  }
  return color ? line : line.trimEnd();
}

const PATH = "/-/status";
const INTERVAL_MS = 2_000;
const LEAST_INTERVAL_MS = 500;
const WIDTH = 160;
const ROWS = 50;

export const top: Command = {
  help: `Usage: sallyport top [options]

Shows the status of a running proxy: routes with their rates, upstreams, logins and refusals of the last
30 minutes, dependencies, keys, and the last refusals. On a terminal it is updated until
Ctrl-C; elsewhere it is printed once. The page /-/ of the admin listener shows the same in a browser.

      --url URL         connects there and reads no configuration, such as http://127.0.0.1:9464
      --interval TIME   time between updates (default: 2s)
      --once            prints the status once, like sallyport status
      --format text|json  with --once; default: text
${CONFIGURATION_HELP}
  -h, --help            this text`,
  async run(args, terminal) {
    const text = { type: "string" } as const;
    const flags = parseFlags(args, {
      ...CONFIGURATION_FLAGS,
      url: text,
      interval: text,
      once: { type: "boolean" },
      format: text,
    });
    const format = formatFrom(flags.format, ["text", "json"]);
    if (format === "json" && flags.once !== true)
      throw new UsageError("--format json needs --once");
    const { url } = await adminAddress(flags, terminal, PATH);
    const everyMs =
      flags.interval === undefined
        ? INTERVAL_MS
        : durationFlag("interval", flags.interval, LEAST_INTERVAL_MS);
    if (flags.once === true || !process.stdout.isTTY) return printOnce(url, format, terminal);
    await watch(url, everyMs, terminal);
    return EXIT.done;
  },
};

export const status: Command = {
  help: `Usage: sallyport status [options]

Prints the status of a running proxy once: whether it is ready, routes, upstreams, logins and refusals of
the last 30 minutes, dependencies, keys, and the last refusals, as the page /-/ of the admin listener does. Exit
code 1 if the proxy is not ready or does not answer. To keep looking, use sallyport top.

${CONFIGURATION_HELP}
      --url URL         connects there and reads no configuration, such as http://127.0.0.1:9464
      --format text|json  default: text
  -h, --help            this text`,
  async run(args, terminal) {
    const text = { type: "string" } as const;
    const flags = parseFlags(args, { ...CONFIGURATION_FLAGS, url: text, format: text });
    const format = formatFrom(flags.format, ["text", "json"]);
    const { url } = await adminAddress(flags, terminal, PATH);
    return printOnce(url, format, terminal);
  },
};

/** @returns the exit code, which says whether the proxy is ready. */
async function printOnce(url: URL, format: "text" | "json", terminal: Terminal): Promise<number> {
  const found = await fetchStatus(url);
  const text =
    format === "json"
      ? JSON.stringify(found, undefined, 2)
      : statusLines(found, undefined, optionsFor(terminal)).join("\n");
  terminal.out(`${text}\n`);
  return found.ready ? EXIT.done : EXIT.failed;
}

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
