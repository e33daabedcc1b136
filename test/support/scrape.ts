import { ask } from "./ask.ts";

export interface Scrape {
  /** Name and labels of every series, in page order. */
  readonly series: readonly string[];
  /** Returns the value of a series, written as on the page (`name{a="b",c="d"}`), or undefined if it is absent. */
  value(series: string): number | undefined;
  /** Returns the sum of all series of a name whose labels contain these pieces (`code="200"`). */
  sum(name: string, ...pieces: string[]): number;
  readonly text: string;
}

/** Fetches and parses the metrics from the admin listener. */
export async function scrape({ adminPort }: { readonly adminPort: number }): Promise<Scrape> {
  const { body } = await ask({ port: adminPort }, "/metrics");
  const values = new Map<string, number>();
  for (const line of body.split("\n")) {
    const space = line.lastIndexOf(" ");
    if (space > 0 && !line.startsWith("#")) {
      values.set(line.slice(0, space), Number(line.slice(space + 1)));
    }
  }
  return {
    series: [...values.keys()],
    value: (series) => values.get(series),
    sum(name, ...pieces) {
      let total = 0;
      for (const [series, value] of values) {
        const named = series === name || series.startsWith(`${name}{`);
        if (named && pieces.every((piece) => series.includes(piece))) total += value;
      }
      return total;
    },
    text: body,
  };
}
