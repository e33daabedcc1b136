import type { Sample } from "../machine/samples.ts";
import type { Finding } from "./finding.ts";

/** The results of a run. */
export interface Report {
  readonly seed: number;
  readonly entry: string;
  readonly workers: number;
  /** The length of the traffic. */
  readonly seconds: number;
  /** Whether it was ended early. */
  readonly cutShort: boolean;
  readonly begun: number;
  readonly heldBack: number;
  /** Requests with the right answer, by kind of traffic. */
  readonly right: Readonly<Record<string, number>>;
  /** Requests without it because of a fault, by fault. */
  readonly excused: Readonly<Record<string, number>>;
  /** How often each fault occurred. */
  readonly faults: Readonly<Record<string, number>>;
  /** The samples during the traffic. */
  readonly samples: readonly Sample[];
  readonly findings: readonly Finding[];
}

export function hasPassed({ findings }: Report): boolean {
  return findings.every(({ verdict }) => verdict !== "FAIL");
}

/** Renders the report as text: a table of the properties, followed by the failures. */
export function renderReport(report: Report): string {
  const { findings, seed, seconds, begun, heldBack, workers, entry } = report;
  const early = report.cutShort ? ", cut short" : "";
  const rows = [
    ["property", "figure", "limit", ""],
    ...findings.map((row) => [row.property, row.figure, row.limit, row.verdict]),
  ];
  const widths = [0, 1, 2].map((column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  const table = rows.map((row) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "),
  );
  const failures = findings
    .filter(({ verdict }) => verdict === "FAIL")
    .flatMap(({ property, examples }) => [
      "",
      `${property}:`,
      ...examples.map((why) => `  ${why}`),
    ]);
  return [
    `${entry}, ${workers} worker${workers === 1 ? "" : "s"}, seed ${seed}: ${begun} pieces of traffic in ${seconds.toFixed(0)} s${early}, ${heldBack} held back`,
    `right: ${counts(report.right)}`,
    `faults: ${counts(report.faults)}`,
    `excused by a fault: ${counts(report.excused)}`,
    "",
    ...table,
    ...failures,
  ].join("\n");
}

function counts(by: Readonly<Record<string, number>>): string {
  const words = Object.entries(by).map(([name, count]) => `${name} ${count}`);
  return words.length === 0 ? "none" : words.join(", ");
}
