import { styleText } from "node:util";
import type { RecentMinute } from "../../core/recent.ts";
import type { Status } from "../../core/status.ts";
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
