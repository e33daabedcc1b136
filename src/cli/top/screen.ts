import { styleText } from "node:util";
import type { RecentMinute } from "../../core/recent.ts";
import type { Status } from "../../core/status.ts";
import { printable } from "../../lib/text/printable.ts";
import { amount, bytes, clockTime, relative, span } from "../../server/admin/status/words.ts";

/** Properties of the terminal. */
export interface ScreenOptions {
  /** Longer lines are cut. */
  readonly width: number;
  readonly color: boolean;
  /** Whether bars are drawn with Unicode blocks. */
  readonly unicode: boolean;
}

type Style = Parameters<typeof styleText>[0];

/** A text and its style, kept apart so that the width of the text is known. */
interface Cell {
  readonly text: string;
  readonly style?: Style;
  readonly right?: true;
}

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
  const { version, host, state, ready, checks, now, startedAt, workers, memory, traffic } = status;
  const failing = checks.filter(({ passed }) => !passed).map(({ name }) => name);
  const health = state !== "serving" ? state : ready ? "ready" : `not ready: ${failing.join(", ")}`;
  const rate = rateOf(traffic.requests, before?.traffic.requests, status, before);
  return [
    [
      { text: "Sallyport ", style: "bold" },
      { text: `${version}  ${host}  ` },
      { text: health, style: health === "ready" ? "green" : "red" },
      { text: `  up ${span(now - startedAt)}  ${workers.alive} of ${workers.count} workers` },
      { text: `  ${bytes(memory.residentBytes)}` },
    ],
    [
      { text: `${amount(traffic.requests)} requests${rate === "" ? "" : `, ${rate} a second`}` },
      { text: `  ${amount(traffic.inFlight)} in flight  ${amount(traffic.webSockets)} WebSockets` },
      { text: `  ${amount(traffic.verifiedTokens)} tokens` },
    ],
    ...(status.reload === undefined
      ? []
      : [
          [
            { text: `reloaded ${relative(status.reload.at, now)}: ` },
            status.reload.successful
              ? { text: `${status.reload.changes.length} values changed` }
              : { text: status.reload.problems[0] ?? "failed", style: "red" as const },
          ],
        ]),
  ];
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
    return [
      ...[{ text: name }, { text: `${hosts?.join(",") ?? ""}${path}` }, { text: access }],
      ...[{ text: upstream }, { text: amount(requests) }],
      { text: rateOf(requests, earlier, status, before) },
      { text: amount(clientErrors), ...(clientErrors > 0 ? { style: "yellow" as const } : {}) },
      { text: amount(serverErrors), ...(serverErrors > 0 ? { style: "red" as const } : {}) },
    ];
  });
}

function upstreamRows({ upstreams }: Status): Cell[][] {
  return upstreams.flatMap(({ name, targets, inFlight, waiting }) =>
    targets.map(({ address, reachable, state }, index): Cell[] => [
      { text: index === 0 ? name : "" },
      { text: address },
      { text: state, style: !reachable ? "red" : state === "ok" ? "green" : "yellow" },
      { text: index === 0 ? amount(inFlight) : "" },
      { text: index === 0 ? amount(waiting) : "" },
    ]),
  );
}

const BLOCKS = " ▁▂▃▄▅▆▇█";
const ASCII_BLOCKS = " .:-=+*#@";

function minuteRows(
  minutes: readonly RecentMinute[],
  kind: "logins" | "refusals",
  { unicode }: ScreenOptions,
): Cell[][] {
  const words = [...new Set(minutes.flatMap((minute) => Object.keys(minute[kind])))];
  const rows = words.map((word) => {
    const counts = minutes.map((minute) => minute[kind][word] ?? 0);
    const highest = Math.max(...counts, 1);
    const blocks = unicode ? BLOCKS : ASCII_BLOCKS;
    const bar = counts.map((count) => blocks[Math.ceil((count / highest) * 8)] ?? " ").join("");
    return { word, bar, total: counts.reduce((sum, count) => sum + count, 0) };
  });
  return rows
    .toSorted((a, b) => b.total - a.total)
    .map(({ word, bar, total }) => [
      { text: word },
      { text: bar, style: word === "success" ? "green" : "cyan" },
      { text: amount(total) },
    ]);
}

function keyRows({ keys, certificate, now }: Status): Cell[][] {
  const certificates =
    certificate === undefined
      ? []
      : [
          [
            { text: certificate.subject },
            { text: "certificate" },
            { text: "" },
            { text: relative(certificate.notAfter, now) },
          ],
        ];
  const rows = keys.map(({ kid, signs, state, madeAt, verifiesUntil }): Cell[] => [
    { text: kid },
    { text: signs === "tokens" ? state : `${state}, ${signs}` },
    { text: relative(madeAt, now) },
    { text: verifiesUntil === undefined ? "never" : relative(verifiesUntil, now) },
  ]);
  return [...certificates, ...rows];
}

function issuerRows({ issuers, now }: Status): Cell[][] {
  return issuers.map(({ issuer, usable, keys, readAt, stale }): Cell[] => [
    { text: issuer },
    !usable
      ? { text: "no keys", style: "red" }
      : stale
        ? { text: "old keys", style: "yellow" }
        : { text: "usable", style: "green" },
    { text: String(keys) },
    { text: readAt === undefined ? "never read" : span(now - readAt) },
  ]);
}

function refusalRows({ refusals }: Status): Cell[][] {
  return refusals.map(({ at, status, reason, method, host, path, client }): Cell[] => [
    { text: clockTime(at) },
    { text: String(status), style: status >= 500 ? "red" : "yellow" },
    { text: reason },
    { text: method === "" ? "not readable" : `${method} ${host}${path}` },
    { text: client },
  ]);
}

const LONGEST_CELL = 60;

/** Aligns rows under titles; a column whose title begins with `>` is right-aligned. Without rows, returns no lines. */
function tableLines(titles: readonly string[], rows: readonly (readonly Cell[])[]): Cell[][] {
  if (rows.length === 0) return [];
  const head = titles.map((title): Cell => ({ text: title.replace(">", ""), style: "dim" }));
  const cut = rows.map((row) =>
    row.map((cell) => ({ ...cell, text: shortened(printable(cell.text), LONGEST_CELL) })),
  );
  const widths = titles.map((_, column) =>
    Math.max(...[head, ...cut].map((row) => row[column]?.text.length ?? 0)),
  );
  return [head, ...cut].map((row) =>
    row.map((cell, column) => {
      const width = widths[column] ?? 0;
      const aligned =
        titles[column]?.startsWith(">") === true
          ? cell.text.padStart(width)
          : cell.text.padEnd(width);
      return { ...cell, text: `${aligned}  ` };
    }),
  );
}

function shortened(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, Math.max(0, width - 3))}...` : text;
}

/** Cuts a line to the width of the terminal, and applies the styles. */
function drawn(cells: readonly Cell[], { width, color }: ScreenOptions): string {
  let left = width;
  let line = "";
  for (const { text, style } of cells) {
    const part = printable(text).slice(0, left);
    left -= part.length;
    line += color && style !== undefined ? styleText(style, part, { validateStream: false }) : part;
  }
  return color ? line : line.trimEnd();
}
