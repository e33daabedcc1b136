import { setTimeout as after } from "node:timers/promises";
import { json } from "node:stream/consumers";
import { styleText } from "node:util";
import type { Status } from "../../core/status.ts";
import { adminAddress } from "../admin-address.ts";
import { CONFIGURATION_FLAGS, CONFIGURATION_HELP, durationFlag, parseFlags } from "../arguments.ts";
import { type Command, EXIT, type Terminal } from "../command.ts";
import { showsUnicode } from "../terminal/format.ts";
import { request } from "../../lib/http/node-http.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import type { RecentMinute } from "../../core/recent.ts";
import { printable } from "../../lib/text/printable.ts";
import {
  amount,
  bytes,
  clockTime,
  health,
  relative,
  requestLine,
  seriesOf,
  span,
} from "../../server/admin/status/words.ts";

const TIMEOUT_MS = 5_000;

/**
 * Fetches the status of a running proxy.
 * @throws Error if there is no response, a refusal, or a response that is not a status; the message says which.
 */
export async function fetchStatus(url: URL): Promise<Status> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { promise, resolve, reject } = Promise.withResolvers<Status>();
  const sent = request(url, { agent: false, signal }, (response) => {
    const { statusCode = 0 } = response;
    json(response).then(
      (body) => {
        if (statusCode === 200 && isStatus(body)) resolve(body);
        else reject(new Error(`${url.href} says ${statusCode}${messageIn(body)}`));
      },
      () => reject(new Error(`${url.href} says ${statusCode}, but its body is not a status`)),
    );
  });
  sent.on("error", (error) => {
    const late = `${url.href} did not answer within ${TIMEOUT_MS / 1000} s`;
    reject(signal.aborted ? new Error(late) : error);
  });
  sent.end();
  return promise;
}

function isStatus(body: unknown): body is Status {
  return (
    isJsonObject(body) &&
    ["routes", "upstreams", "keys", "minutes", "refusals"].every((name) =>
      Array.isArray(body[name]),
    )
  );
}

function messageIn(body: unknown): string {
  const known = typeof body === "object" && body !== null && "message" in body;
  return known && typeof body.message === "string" ? `: ${body.message}` : "";
}

/** Properties of the terminal. */
export interface ScreenOptions {
  /** Longer lines are cut. */
  readonly width: number;
  readonly color: boolean;
  /** Whether bars are drawn with Unicode blocks. */
  readonly unicode: boolean;
}

type Style = Parameters<typeof styleText>[0];

/** A text, and its style if it has one, kept apart so that the width of the text is known. */
type Cell = string | readonly [text: string, style: Style | undefined];

/** Renders a status as lines. Rates are computed from `before`, an earlier status; without it, none are shown. */
export function statusLines(status: Status, before: Status | undefined, options: ScreenOptions) {
  const sections = [
    headLines(status, before),
    tableLines(
      ["ROUTE", "PATH", "ACCESS", "UPSTREAM", ">REQUESTS", ">/s", ">4xx", ">5xx"],
      routeRows(status, before),
    ),
    tableLines(["UPSTREAM", "TARGET", "HEALTH", ">IN FLIGHT", ">WAITING"], upstreamRows(status)),
    tableLines(
      ["LOGINS", "LAST 30 MINUTES", ">TOTAL"],
      minuteRows(status.minutes, "logins", options),
    ),
    tableLines(
      ["REFUSALS", "LAST 30 MINUTES", ">TOTAL"],
      minuteRows(status.minutes, "refusals", options),
    ),
    tableLines(["KEY", "STATE", "MADE", "ENDS"], keyRows(status)),
    tableLines(["ISSUER", "STATE", ">KEYS", "AGE"], issuerRows(status)),
    tableLines(["REFUSED", "", "REASON", "REQUEST", "CLIENT"], refusalRows(status)),
  ].filter((lines) => lines.length > 0);
  return sections
    .flatMap((lines, index) => (index === 0 ? lines : [[], ...lines]))
    .map((cells) => drawn(cells, options));
}

function headLines(status: Status, before: Status | undefined): Cell[][] {
  const { version, host, now, startedAt, workers, memory, traffic, reload } = status;
  const state = health(status);
  const rate = rateOf(traffic.requests, before?.traffic.requests, status, before);
  const lines: Cell[][] = [
    [
      ["Sallyport ", "bold"],
      `${version}  ${host}  `,
      [state, state === "ready" ? "green" : "red"],
      `  up ${span(now - startedAt)}  ${workers.alive} of ${workers.count} workers`,
      `  ${bytes(memory.residentBytes)}`,
    ],
    [
      `${amount(traffic.requests)} requests${rate === "" ? "" : `, ${rate} a second`}`,
      `  ${amount(traffic.inFlight)} in flight  ${amount(traffic.webSockets)} WebSockets`,
      `  ${amount(traffic.verifiedTokens)} tokens`,
    ],
  ];
  if (reload !== undefined) {
    const at = relative(reload.at, now);
    lines.push(
      reload.successful
        ? [`reloaded ${at}: ${reload.changes.length} values changed`]
        : [[`reload failed ${at}: ${reload.problems[0] ?? "see the log"}`, "red"]],
    );
  }
  return lines;
}

/** Returns the mean rate per second since the earlier status; empty without one, or if the process has restarted. */
function rateOf(
  count: number,
  earlier: number | undefined,
  { now, startedAt }: Status,
  before: Status | undefined,
): string {
  if (before === undefined || earlier === undefined || before.startedAt !== startedAt) return "";
  const seconds = (now - before.now) / 1000;
  return seconds <= 0 ? "" : (Math.max(0, count - earlier) / seconds).toFixed(1);
}

function routeRows(status: Status, before: Status | undefined): Cell[][] {
  return status.routes.map((route) => {
    const { name, hosts, path, access, upstream, requests, clientErrors, serverErrors } = route;
    const earlier = before?.routes.find((other) => other.name === name)?.requests;
    const counted = (count: number, style: Style): Cell =>
      count > 0 ? [amount(count), style] : amount(count);
    return [
      ...[name, `${hosts?.join(",") ?? ""}${path}`, access, upstream, amount(requests)],
      rateOf(requests, earlier, status, before),
      counted(clientErrors, "yellow"),
      counted(serverErrors, "red"),
    ];
  });
}

function upstreamRows({ upstreams }: Status): Cell[][] {
  return upstreams.flatMap(({ name, targets, inFlight, waiting }) =>
    targets.map(({ address, reachable, state }, index): Cell[] => {
      const reached: Cell = [state, !reachable ? "red" : state === "ok" ? "green" : "yellow"];
      return index === 0
        ? [name, address, reached, amount(inFlight), amount(waiting)]
        : ["", address, reached, "", ""];
    }),
  );
}

const BLOCKS = " ▁▂▃▄▅▆▇█";
const ASCII_BLOCKS = " .:-=+*#@";

function minuteRows(
  minutes: readonly RecentMinute[],
  kind: "logins" | "refusals",
  { unicode }: ScreenOptions,
): Cell[][] {
  const blocks = unicode ? BLOCKS : ASCII_BLOCKS;
  return seriesOf(minutes, kind).map(({ word, counts, total }) => {
    const highest = Math.max(...counts, 1);
    const bar = counts.map((count) => blocks[Math.ceil((count / highest) * 8)] ?? " ").join("");
    return [word, [bar, word === "success" ? "green" : "cyan"], amount(total)];
  });
}

function keyRows({ keys, certificate, now }: Status): Cell[][] {
  const rows = keys.map(({ kid, signs, state, madeAt, verifiesUntil }) => [
    kid,
    signs === "tokens" ? state : `${state}, ${signs}`,
    relative(madeAt, now),
    verifiesUntil === undefined ? "never" : relative(verifiesUntil, now),
  ]);
  if (certificate === undefined) return rows;
  return [[certificate.subject, "certificate", "", relative(certificate.notAfter, now)], ...rows];
}

function issuerRows({ issuers, now }: Status): Cell[][] {
  return issuers.map(({ issuer, usable, keys, readAt, stale }): Cell[] => [
    issuer,
    !usable ? ["no keys", "red"] : stale ? ["old keys", "yellow"] : ["usable", "green"],
    String(keys),
    readAt === undefined ? "never read" : span(now - readAt),
  ]);
}

function refusalRows({ refusals }: Status): Cell[][] {
  return refusals.map((refusal): Cell[] => {
    const { at, status, reason, client } = refusal;
    const code: Cell = [String(status), status >= 500 ? "red" : "yellow"];
    return [clockTime(at), code, reason, requestLine(refusal), client];
  });
}

const LONGEST_CELL = 60;

/** Aligns rows under titles; a column whose title begins with `>` is right-aligned. Without rows, returns no lines. */
function tableLines(titles: readonly string[], rows: readonly (readonly Cell[])[]): Cell[][] {
  if (rows.length === 0) return [];
  const head = titles.map((title) => [title.replace(">", ""), "dim"] as const);
  const cut = rows.map((row) =>
    row.map((cell) => {
      const [text, style] = parts(cell);
      return [shortened(printable(text), LONGEST_CELL), style] as const;
    }),
  );
  const lines = [head, ...cut];
  const widths = titles.map((_, column) =>
    Math.max(...lines.map((row) => row[column]?.[0].length ?? 0)),
  );
  return lines.map((row) =>
    row.map(([text, style], column): Cell => {
      const width = widths[column] ?? 0;
      const right = titles[column]?.startsWith(">") === true;
      return [`${right ? text.padStart(width) : text.padEnd(width)}  `, style];
    }),
  );
}

function parts(cell: Cell): readonly [text: string, style: Style | undefined] {
  return typeof cell === "string" ? [cell, undefined] : cell;
}

function shortened(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, Math.max(0, width - 3))}...` : text;
}

/** Cuts a line to the width of the terminal, and applies the styles. */
function drawn(cells: readonly Cell[], { width, color }: ScreenOptions): string {
  let left = width;
  let line = "";
  for (const [text, style] of cells.map(parts)) {
    const part = printable(text).slice(0, left);
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
