import type { ClassName } from "../classes.ts";
import type { Verdict } from "./stage.ts";

export interface Count {
  cases: number;
  /** Requests that reached the backend. */
  forwarded: number;
  /** Answers that the proxy generated. */
  refused: number;
}

/** Counts what was played, by class. */
export class Tally {
  readonly counts: ReadonlyMap<ClassName, Count>;
  /** The time during which cases were played concurrently, in milliseconds. */
  playedMs = 0;

  constructor(names: readonly ClassName[]) {
    this.counts = new Map(names.map((name) => [name, { cases: 0, forwarded: 0, refused: 0 }]));
  }

  add(name: ClassName, { forwarded, refused }: Verdict): void {
    const count = this.counts.get(name);
    if (count === undefined) return;
    count.cases += 1;
    count.forwarded += forwarded;
    count.refused += refused;
  }

  get cases(): number {
    return [...this.counts.values()].reduce((sum, { cases }) => sum + cases, 0);
  }

  /** Returns a progress line. */
  line(): string {
    const seconds = this.playedMs / 1_000;
    return `${Math.round(seconds)} s: ${this.cases} cases, ${Math.round(this.cases / seconds)}/s`;
  }

  /** Returns one line for each class. */
  table(): string {
    const rows = [...this.counts].map(([name, { cases, forwarded, refused }]) =>
      name === "config"
        ? `  ${name.padEnd(8)} ${cases} cases`
        : `  ${name.padEnd(8)} ${cases} cases, ${forwarded} requests forwarded, ${refused} refused`,
    );
    return rows.join("\n");
  }
}
