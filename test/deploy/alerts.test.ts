/** The rules for Prometheus ask for what Sallyport shows, and each alert has a test of promtool's and a runbook entry. */
import { beforeAll, describe, expect, it, test } from "vitest";
import { codeIn, readDocument } from "../docs/markdown.ts";
import { unknownIn } from "./queries.ts";
import { alertsIn, operatorGroups, recordedIn, ruleGroups, ruleTests } from "./rule-files.ts";
import { entries } from "./runbook-entries.ts";
import { type ShownMetrics, shownMetrics } from "./shown-metrics.ts";

const groups = ruleGroups();
const alerts = alertsIn(groups);
const rules = groups.flatMap((group) => group.rules);
let shown: ShownMetrics;
beforeAll(async () => {
  shown = await shownMetrics();
});

describe("a query is compared with what is shown", () => {
  const recorded = new Set(["job:known:rate5m"]);
  it.each([
    ["sum by (reason) (rate(sallyport_auth_decisions_total{result='x'}[5m]))", []],
    ["sallyport_nothing_total", ["sallyport_nothing_total"]],
    ["rate(salyport_logins_total[5m])", ["salyport_logins_total"]],
    ['sallyport_logins_total{outcome="error"}', ["sallyport_logins_total outcome"]],
    ['sallyport_logins_total{result=~"error|lost"}', ["sallyport_logins_total result=lost"]],
    [
      'sallyport_http_requests_total{route!~"version|x"}',
      ["sallyport_http_requests_total route=x"],
    ],
    ["sum by (colour) (sallyport_draining)", ["colour"]],
    ["job:known:rate5m{} > job:lost:rate5m{}", ["job:lost:rate5m"]],
  ])("%s", (expression, unknown) => {
    expect(unknownIn(expression, shown, recorded)).toEqual(unknown);
  });
});

test("every metric, label and value that a rule asks for is shown", () => {
  const recorded = recordedIn(groups);
  expect(rules.flatMap(({ expr }) => unknownIn(expr, shown, recorded))).toEqual([]);
});

test("every metric of ours that is shown is in the reference", () => {
  const told = readDocument("docs/reference/metrics.md")
    .rows("metric", "type", "labels", "meaning")
    .map((row) => codeIn(row["metric"]));
  const ours = [...shown.names].filter((name) => name.startsWith("sallyport_"));
  const bare = ours.map((name) => name.replace(/_seconds_(?:bucket|sum|count)$/, "_seconds"));
  expect(bare.filter((name) => !told.includes(name))).toEqual([]);
});

test("the PrometheusRule holds the same groups as the rule file", () => {
  expect(operatorGroups()).toEqual(groups);
});

test("every alert has an entry in the runbook, and no entry is without an alert", () => {
  const told = entries("Alerts").map(({ heading }) => heading);
  expect(told).toEqual(alerts.map(({ alert }) => alert));
});

describe.each(alerts)("$alert", ({ alert, labels, annotations }) => {
  const tests = ruleTests().filter(({ promql_expr_test: asked }) =>
    asked.some(({ expr }) => expr === `ALERTS{alertname="${alert}",alertstate="firing"}`),
  );

  it("says how urgent it is, what is wrong, and where help is", () => {
    expect(["critical", "warning"]).toContain(labels["severity"]);
    expect(annotations["summary"]).toMatch(/\S/);
    expect(annotations["description"]).toMatch(/\.$/);
    expect(annotations["runbook_url"]).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
  });

  it("is seen firing for one job, and silent before and for another", () => {
    expect(tests).toHaveLength(1);
    const series = tests[0]?.input_series ?? [];
    const asked = tests[0]?.promql_expr_test ?? [];
    for (const job of ["failing", "healthy"]) {
      expect(series.filter((each) => each.series.includes(`job="${job}"`))).not.toEqual([]);
    }
    expect(asked.map(({ exp_samples: samples }) => samples.length)).toEqual([0, 1]);
    expect(asked[1]?.exp_samples[0]?.labels).toContain('job="failing"');
  });

  it("names no label that it does not have", () => {
    const fired = tests[0]?.promql_expr_test[1]?.exp_samples[0]?.labels;
    const used = Object.values(annotations).flatMap((text) =>
      [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label = ""]) => label),
    );
    for (const label of used) expect(fired).toContain(`${label}="`);
  });
});
