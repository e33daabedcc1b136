import type { Sample } from "../machine/samples.ts";
import type { Finding } from "./finding.ts";

/** What a run found. */
export interface Report {
  readonly seed: number;
  readonly entry: string;
  readonly workers: number;
  /** Of the traffic. */
  readonly seconds: number;
  /** Somebody ended it before its time. */
  readonly cutShort: boolean;
  readonly begun: number;
  readonly heldBack: number;
  /** By kind of traffic: those that got their right answer. */
  readonly right: Readonly<Record<string, number>>;
  /** By fault: those that a fault at their backend kept from it. */
  readonly excused: Readonly<Record<string, number>>;
  /** How often each fault took place. */
  readonly faults: Readonly<Record<string, number>>;
  /** Looks on the way. */
  readonly samples: readonly Sample[];
  readonly findings: readonly Finding[];
}

export function hasPassed({ findings }: Report): boolean {
  return findings.every(({ verdict }) => verdict !== "FAIL");
}

/** For people: the properties as a table, and what went wrong below. */
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
