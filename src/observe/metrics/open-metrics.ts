/** A request that serves as an example of those in a bucket. */
export interface Exemplar {
  readonly traceId: string;
  /** In the unit of the buckets. */
  readonly value: number;
  /** Wall clock, milliseconds since the epoch. */
  readonly atMs: number;
}

/**
 * Converts Prometheus' text format to OpenMetrics 1.0, which supports exemplars: the names of counter families lose
 * `_total`, there are no empty lines, and an end mark follows. prom-client's own conversion renames its counters
 * permanently, so a registry could not serve both formats.
 *
 * @param exemplars the exemplars, by the series of a bucket as written in the text.
 */
export function openMetrics(text: string, exemplars: ReadonlyMap<string, Exemplar>): string {
  const lines = text.split("\n").filter((line) => line !== "");
  const counters = new Set(
    lines.flatMap((line) => /^# TYPE (\w+)_total counter$/.exec(line)?.[1] ?? []),
  );
  const written = lines.map((line) => {
    const [, keyword, family = "", rest = ""] = /^# (HELP|TYPE) (\w+)_total (.*)$/.exec(line) ?? [];
    if (keyword !== undefined && counters.has(family)) return `# ${keyword} ${family} ${rest}`;
    const exemplar = exemplars.get(line.slice(0, line.lastIndexOf(" ")));
    return exemplar === undefined ? line : `${line} # ${exemplarText(exemplar)}`;
  });
  return `${[...written, "# EOF"].join("\n")}\n`;
}

function exemplarText({ traceId, value, atMs }: Exemplar): string {
  return `{trace_id="${traceId}"} ${value} ${(atMs / 1000).toFixed(3)}`;
}
