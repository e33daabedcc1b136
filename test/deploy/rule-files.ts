import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { ROOT } from "../docs/markdown.ts";

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Recording {
  readonly record: string;
  readonly expr: string;
}

interface Group {
  readonly name: string;
  readonly rules: readonly (Alert | Recording)[];
}

/** A promtool test. */
interface RuleTest {
  readonly input_series: readonly { readonly series: string }[];
  readonly promql_expr_test: readonly {
    readonly expr: string;
    readonly exp_samples: readonly { readonly labels: string }[];
  }[];
}

/** The folder with the rules. */
export const RULES = join(ROOT, "deploy/prometheus");

export function ruleGroups(): readonly Group[] {
  return (read("sallyport.rules.yaml") as { groups: Group[] }).groups;
}

export function operatorGroups(): readonly Group[] {
  return (read("sallyport.prometheusrule.yaml") as { spec: { groups: Group[] } }).spec.groups;
}

export function ruleTests(): readonly RuleTest[] {
  return (read("sallyport.rules.test.yaml") as { tests: RuleTest[] }).tests;
}

export function alertsIn(groups: readonly Group[]): Alert[] {
  return groups.flatMap(({ rules }) => rules.filter((rule) => "alert" in rule));
}

/** Returns the names of the series from recording rules. */
export function recordedIn(groups: readonly Group[]): ReadonlySet<string> {
  return new Set(
    groups.flatMap(({ rules }) => rules.flatMap((rule) => ("record" in rule ? [rule.record] : []))),
  );
}

function read(name: string): unknown {
  return parse(readFileSync(join(RULES, name), "utf8"));
}
