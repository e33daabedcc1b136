import { ask } from "./ask.ts";

export interface Scrape {
  /** Name and labels of every series, in the order of the page. */
  readonly series: readonly string[];
  /** The value of a series, written as on the page: `sallyport_draining`, `name{a="b",c="d"}`; undefined when absent. */
  value(series: string): number | undefined;
  /** The sum over all series of a name whose labels hold these pieces (`code="200"`). */
  sum(name: string, ...pieces: string[]): number;
  readonly text: string;
}

/** What the admin listener shows to Prometheus. */
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
