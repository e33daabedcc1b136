import { PEERS } from "../peers.ts";
import { SCENARIO_NAMES, SCENARIOS } from "../scenarios.ts";
import { FIGURE_NAMES, FIGURES, type FigureName } from "./figures.ts";
import type { Results, Row } from "./results.ts";
import { ratioOf, type Spread, spreadOf } from "./statistics.ts";
import { judge } from "./targets.ts";

/** Renders all results of a run as Markdown. */
export function renderResults(results: Results): string {
  const { rows, absent } = results;
  return [
    renderMachine(results),
    ...SCENARIO_NAMES.filter((name) => rows.some(({ scenario }) => scenario === name)).map((name) =>
      renderScenario(name, SCENARIOS[name].title, rows),
    ),
    ...absent.map(({ peer, why }) => `Missing: ${PEERS[peer].title} (${why}).`),
  ].join("\n\n");
}

/** Renders the targets and the values reached as Markdown. */
export function renderTargets(results: Results): string {
  return table(
    ["target", "limit", "reached", ""],
    judge(results).map(({ what, limit, reached, word }) => [
      what,
      `≤ ${limit}`,
      reached === undefined ? "–" : spread(reached, limit < 10 ? 2 : 1),
      word,
    ]),
  );
}

function renderMachine({
  date,
  revision,
  machine,
  divided,
  packages,
  rounds,
  seconds,
}: Results): string {
  const { processor, cores, memoryGb, kernel, versions } = machine;
  const programs = Object.entries({ ...versions, ...packages }).map((pair) => pair.join(" "));
  return `${date.slice(0, 10)}, revision ${revision}: ${processor}, ${cores} cores, ${memoryGb} GB, Linux ${kernel}; ${programs.join(", ")}.
${divided ? "In (a) to (d), (f) and (l) to (n) the proxy has a core of its own, and load and backend have the other ones" : "Proxy, load and backend share all cores"}.
Medians of ${rounds} rounds of ${seconds} s with the lowest and the highest; × is Sallyport's value divided by this one, in the same round.`;
}

function renderScenario(name: string, title: string, rows: readonly Row[]): string {
  const own = rows.filter(({ scenario }) => scenario === name);
  const variants = [...new Set(own.map(({ variant }) => variant))];
  return [
    `### (${name}) ${title}`,
    ...groupsOf(variants, own).map((group) => renderGroup(group)),
  ].join("\n\n");
}

/** Groups rows into tables: one for each variant with several peers, and one for all variants with a single peer. */
function groupsOf(variants: readonly string[], rows: readonly Row[]): readonly (readonly Row[])[] {
  const groups = variants.map((variant) => rows.filter((row) => row.variant === variant));
  const single = groups.filter((group) => group.length === 1).flat();
  return [...groups.filter((group) => group.length > 1), single].filter(({ length }) => length > 0);
}

function renderGroup(rows: readonly Row[]): string {
  const figures = FIGURE_NAMES.filter((name) => rows.some(({ rounds }) => name in rounds));
  return table(
    [
      "variant",
      "proxy",
      ...(figures.length === 0 ? [""] : figures.map((name) => FIGURES[name].title)),
    ],
    rows.map((row) => [
      row.variant,
      PEERS[row.peer].title,
      ...(row.void === undefined
        ? figures.map((name) => cell(name, row, rows))
        : [`void: ${oneLine(row.void)}`, ...figures.slice(1).map(() => "")]),
    ]),
  );
}

function cell(name: FigureName, row: Row, rows: readonly Row[]): string {
  const values = row.rounds[name];
  const own = spreadOf(values ?? []);
  if (values === undefined || own === undefined) return "–";
  const text = spread(own, FIGURES[name].digits);
  if (row.peer === "sallyport") return text;
  const sallyport = rows.find(
    ({ peer, variant }) => peer === "sallyport" && variant === row.variant,
  );
  const ratio = ratioOf(sallyport?.rounds[name] ?? [], values);
  return ratio === undefined ? text : `${text}, ×${spread(ratio, 2)}`;
}

export function spread({ median, low, high }: Spread, digits: number): string {
  return `${median.toFixed(digits)} (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").slice(0, 200);
}

/** Renders a table as Markdown. */
export function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const rows = [head, ...body];
  const widths = head.map((_, column) =>
    Math.max(3, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? "").padEnd(width)).join(" | ")} |`;
  return [line(head), line(widths.map((width) => "-".repeat(width))), ...body.map(line)].join("\n");
}
