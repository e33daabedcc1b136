import { OWN_ROUTES } from "../../src/observe/metrics/series.ts";
import type { ShownMetrics } from "./shown-metrics.ts";

/** Labels that Prometheus adds to every series. */
const OF_THE_TARGET = ["namespace", "job", "pod", "instance"];
/** Labels whose values come from a configuration, a backend or a version. */
const OPEN = [...OF_THE_TARGET, "upstream", "code", "version", "node", "le", "alertstate"];
/** Series that Prometheus itself creates. */
const OF_PROMETHEUS = ["up", "ALERTS"];

interface Selector {
  readonly name: string;
  readonly matchers: readonly { readonly label: string; readonly values: readonly string[] }[];
}

/**
 * Compares a PromQL expression with the metrics that Sallyport exports.
 * @param recorded names of series from recording rules.
 * @returns everything in it that does not exist: metrics, labels, and values of labels with a closed set.
 */
export function unknownIn(
  expression: string,
  { names, labels }: ShownMetrics,
  recorded: ReadonlySet<string>,
): string[] {
  const selectors = selectorsIn(expression);
  const unknown = selectors.flatMap(({ name, matchers }) => {
    if (recorded.has(name) || OF_PROMETHEUS.includes(name)) return [];
    if (!names.has(name)) return [name];
    return matchers.flatMap(({ label, values }) => {
      if (OPEN.includes(label)) return [];
      const known = label === "route" ? new Set(OWN_ROUTES) : labels.get(name)?.get(label);
      if (known === undefined) return [`${name} ${label}`];
      return values
        .filter((value) => !known.has(value))
        .map((value) => `${name} ${label}=${value}`);
    });
  });
  const given = new Set([
    ...OF_THE_TARGET,
    ...selectors.flatMap(({ name }) => [...(labels.get(name)?.keys() ?? [])]),
    ...selectors.flatMap(({ name }) => /^[a-z_]+(?=:)/.exec(name)?.[0].split("_") ?? []),
  ]);
  return [...unknown, ...groupedBy(expression).filter((label) => !given.has(label))];
}

/**
 * Returns every series that an expression selects: names before braces or a range, and names with one of our prefixes.
 */
function selectorsIn(expression: string): Selector[] {
  const SERIES =
    /((?:[a-z_]+:)?\b(?:sallyport|process|nodejs)_[\w:]+|\b[a-z_][\w:]*(?=\s*[{[]))(?:\s*\{([^}]*)\})?/gi;
  return [...expression.matchAll(SERIES)].map(([, name = "", inside = ""]) => ({
    name,
    matchers: [...inside.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].map(
      ([, label = "", value = ""]) => ({ label, values: value.split("|").filter(isWord) }),
    ),
  }));
}

function groupedBy(expression: string): string[] {
  return [...expression.matchAll(/\b(?:by|on)\s*\(([^)]*)\)/g)].flatMap(([, list = ""]) =>
    list.split(",").map((label) => label.trim()),
  );
}

/** Returns false for patterns and dashboard variables. */
function isWord(value: string): boolean {
  return /^\w+$/.test(value);
}
