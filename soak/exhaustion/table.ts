import { lossesLine } from "./victim/kernel-losses.ts";
import type { Judged } from "./verdict.ts";
import { MIB } from "./verdict.ts";

const COLUMNS = [
  ["attack", 24],
  ["over", 6],
  ["workers", 8],
  ["peak MiB", 9],
  ["end MiB", 8],
  ["opened", 7],
  ["sent MB", 8],
  ["kept ms", 16],
  ["new ms", 16],
  ["livez ms", 16],
  ["calm ms", 16],
  ["own ms", 7],
  ["failed", 7],
  ["verdict", 8],
] as const;

/** Returns the heading of the table. Times are median, 99th percentile and slowest; "own" is the client's own delay. */
export function heading(): string {
  return COLUMNS.map(([title, width]) => title.padEnd(width))
    .join("")
    .trimEnd();
}

/** Returns one line for an attack, one for each of its faults, and one for the kernel's losses. */
export function row(judged: Judged): string {
  const { name, tls, workers, memory, testimony, counts, faults } = judged;
  const { kept, fresh, livez, calm } = testimony;
  const whole = (value: number): string => String(Math.round(value));
  const cells = [
    name,
    tls ? "TLS" : "plain",
    String(workers),
    whole(memory.peak / MIB),
    whole(memory.last / MIB),
    String(counts.opened),
    (counts.sent / 1e6).toFixed(1),
    ...[kept, fresh, livez, calm].map((seen) =>
      [seen.medianMs, seen.p99Ms, seen.slowestMs].map((ms) => whole(ms)).join("/"),
    ),
    whole(Math.max(...[kept, fresh, livez].map(({ ownMs }) => ownMs))),
    [kept, fresh, livez].map(({ failed }) => failed).join("/"),
    faults.length === 0 ? "PASS" : "FAIL",
  ];
  const line = cells.map((cell, index) => cell.padEnd(COLUMNS[index]?.[1] ?? 0)).join("");
  const notes = [...faults, lossesLine(judged.losses) ?? []].flat();
  return [line.trimEnd(), ...notes.map((note) => `    ${note}`)].join("\n");
}
