/** The Prometheus rules use metrics that exist, and each alert has a promtool test and a runbook entry. */
import { beforeAll, describe, expect, it, test } from "vitest";
import { REFUSAL_REASONS } from "../../src/core/request/outcome.ts";
import { codeIn, codesIn, readDocument } from "../docs/markdown.ts";
import { unknownIn } from "./queries.ts";
import { alertsIn, operatorGroups, recordedIn, ruleGroups, ruleTests } from "./rule-files.ts";
import { alertEntries } from "./runbook-entries.ts";
import { type ShownMetrics, shownMetrics } from "./shown-metrics.ts";

const groups = ruleGroups();
const alerts = alertsIn(groups);
const allTests = ruleTests();
const rules = groups.flatMap((group) => group.rules);
let shown: ShownMetrics;
beforeAll(async () => {
  shown = await shownMetrics();
});

describe("a query is compared with the exported metrics", () => {
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

test("every metric, label and value in a rule is exported", () => {
  const recorded = recordedIn(groups);
  expect(rules.flatMap(({ expr }) => unknownIn(expr, shown, recorded))).toEqual([]);
});

test("every exported metric of Sallyport is in the reference", () => {
  const documented = readDocument("docs/reference/metrics.md")
    .rows("metric", "type", "labels", "meaning")
    .map((row) => codeIn(row["metric"]));
  const ours = [...shown.names].filter((name) => name.startsWith("sallyport_"));
  const bare = ours.map((name) => name.replace(/_seconds_(?:bucket|sum|count)$/, "_seconds"));
  expect(bare.filter((name) => !documented.includes(name))).toEqual([]);
});

test("the PrometheusRule contains the same groups as the rule file", () => {
  expect(operatorGroups()).toEqual(groups);
});

test("every alert has a runbook entry, and every entry an alert", () => {
  const documented = alertEntries.map(({ heading }) => heading);
  expect(documented.toSorted()).toEqual(alerts.map(({ alert }) => alert).toSorted());
});

test("every reason for a rejected request has an alert, and the runbook names those of SallyportRequestsRejected", () => {
  /** Reasons that the client or another alert tells of. */
  const silent = [
    // SallyportRemoteCheckFailing.
    "authorization_unavailable",
    // Attacks, bounded and logged: their clients lose their connections.
    ...["pipelined", "http2_flood", "stalled"],
    // Mistakes in front of Sallyport, which refuse every request at once.
    ...["plain_http", "proxy_protocol"],
    // Of a process that ends.
    "drain_timeout",
  ];
  const reasonsIn = (expr: string): string[] =>
    [...expr.matchAll(/requests_rejected_total\{\s*reason=~?"([^"]+)"/g)].flatMap(
      ([, reasons = ""]) => reasons.split("|"),
    );
  const alerting = new Set(alerts.flatMap(({ expr }) => reasonsIn(expr)));
  expect([...alerting, ...silent].toSorted()).toEqual([...REFUSAL_REASONS].toSorted());
  const { expr = "" } = alerts.find(({ alert }) => alert === "SallyportRequestsRejected") ?? {};
  const entry = alertEntries.find(({ heading }) => heading === "SallyportRequestsRejected");
  expect(codesIn(/^\*\*Do:\*\* [^]*/m.exec(entry?.text ?? "")?.[0])).toEqual([
    ...new Set(reasonsIn(expr)),
  ]);
});

describe.each(alerts)("$alert", ({ alert, labels, annotations }) => {
  const tests = allTests.filter(({ promql_expr_test: evaluated }) =>
    evaluated.some(({ expr }) => expr === `ALERTS{alertname="${alert}",alertstate="firing"}`),
  );

  it("has a severity, a description and a link to the runbook", () => {
    expect(["critical", "warning"]).toContain(labels["severity"]);
    expect(annotations["summary"]).toMatch(/\S/);
    expect(annotations["description"]).toMatch(/\.$/);
    expect(annotations["runbook_url"]).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
  });

  it("is tested to fire for one job, and to be silent before and for another job", () => {
    expect(tests).toHaveLength(1);
    const series = tests[0]?.input_series ?? [];
    const evaluated = tests[0]?.promql_expr_test ?? [];
    for (const job of ["failing", "healthy"]) {
      expect(series.filter((each) => each.series.includes(`job="${job}"`))).not.toEqual([]);
    }
    expect(evaluated.map(({ exp_samples: samples }) => samples.length)).toEqual([0, 1]);
    expect(evaluated[1]?.exp_samples[0]?.labels).toContain('job="failing"');
  });

  it("refers only to its own labels", () => {
    const fired = tests[0]?.promql_expr_test[1]?.exp_samples[0]?.labels;
    const used = Object.values(annotations).flatMap((text) =>
      [...text.matchAll(/\$labels\.(\w+)/g)].map(([, label = ""]) => label),
    );
    for (const label of used) expect(fired).toContain(`${label}="`);
  });
});
