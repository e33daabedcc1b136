/** The dashboard can be imported into any Grafana, and uses metrics that exist. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { ROOT } from "../docs/markdown.ts";
import { unknownIn } from "./queries.ts";
import { type ShownMetrics, shownMetrics } from "./shown-metrics.ts";

/** The data source the reader has selected: with the uid from one Grafana, every panel would be empty in another. */
const datasource = z.strictObject({
  type: z.literal("prometheus"),
  uid: z.literal("${datasource}"),
});
const cells = z.int().min(0);
const gridPos = z.strictObject({ x: cells.max(23), y: cells, w: cells.max(24), h: cells });
const panel = z.object({
  id: z.int().positive(),
  type: z.enum(["timeseries", "stat", "table"]),
  title: z.string().min(1),
  description: z.string(),
  datasource,
  gridPos,
  fieldConfig: z.object({ defaults: z.object({ unit: z.string() }), overrides: z.array(z.any()) }),
  options: z.object({}),
  targets: z
    .array(
      z.object({
        refId: z.string().regex(/^[A-Z]$/),
        datasource,
        expr: z.string().min(1),
        legendFormat: z.string(),
      }),
    )
    .min(1),
});
const row = z.strictObject({
  id: z.int().positive(),
  type: z.literal("row"),
  title: z.string().min(1),
  collapsed: z.literal(false),
  gridPos,
  panels: z.tuple([]),
});
const schema = z.object({
  uid: z.string().max(40),
  title: z.string(),
  schemaVersion: z.int().min(36),
  refresh: z.string(),
  time: z.object({ from: z.string(), to: z.string() }),
  annotations: z.object({ list: z.array(z.object({ datasource, expr: z.string() })) }),
  templating: z.object({
    list: z.array(
      z.object({
        name: z.string(),
        type: z.enum(["datasource", "query"]),
        query: z.union([z.string(), z.object({ query: z.string(), refId: z.string() })]),
        datasource: datasource.optional(),
      }),
    ),
  }),
  panels: z.array(z.discriminatedUnion("type", [row, panel])),
});

const text = readFileSync(join(ROOT, "deploy/grafana/sallyport.json"), "utf8");
const dashboard = schema.parse(JSON.parse(text));
const panels = dashboard.panels.filter((each) => each.type !== "row");
const variables = dashboard.templating.list;
const queries = variables.map(({ query }) => (typeof query === "string" ? query : query.query));

let shown: ShownMetrics;
beforeAll(async () => {
  shown = await shownMetrics();
});

test("every metric, label and value in a panel or variable is exported", () => {
  const asked = [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...dashboard.annotations.list.map(({ expr }) => expr.replace(/alertname=~"[^"]*",/, "")),
    ...queries.flatMap((query) => /^label_values\((.+), \w+\)$/.exec(query)?.[1] ?? []),
  ];
  expect(asked.length).toBeGreaterThan(panels.length);
  expect(asked.flatMap((expression) => unknownIn(expression, shown, new Set()))).toEqual([]);
});

test("legends use labels that their query preserves", () => {
  for (const { targets } of panels) {
    for (const { expr, legendFormat } of targets) {
      const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) =>
        list.split(", "),
      );
      const summed = /\b(?:sum|count|min|max)\b/.test(expr);
      const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
      if (summed) expect(kept, expr).toEqual(expect.arrayContaining(named));
      else expect(["pod"], expr).toEqual(expect.arrayContaining(named));
    }
  }
});

test("the variables select the Prometheus, the namespace, the service and the pod; no others are used", () => {
  const names = variables.map(({ name }) => name);
  expect(names).toEqual(["datasource", "namespace", "job", "pod"]);
  const used = [...text.matchAll(/\$\{?([a-z]\w*)\}?/g)].map(([, name = ""]) => name);
  expect(new Set(used)).toEqual(new Set(names));
  for (const { targets } of panels) {
    for (const { expr } of targets) {
      expect(expr).toContain('namespace=~"$namespace",job=~"$job",pod=~"$pod"');
    }
  }
});

test("there is a row for each subject", () => {
  const titles = dashboard.panels.flatMap(({ type, title }) => (type === "row" ? [title] : []));
  const SUBJECTS = ["Overview", "Logins", "Tokens", "Upstreams", "Runtime"];
  expect(titles).toEqual([...SUBJECTS, "Expiry and configuration"]);
});

test("panels have unique names and do not overlap", () => {
  const all = dashboard.panels;
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length);
  expect(new Set(all.map(({ title }) => title)).size).toBe(all.length);
  const taken = new Set<string>();
  for (const { title, gridPos: place } of all) {
    expect(place.x + place.w, title).toBeLessThanOrEqual(24);
    for (let x = place.x; x < place.x + place.w; x++) {
      for (let y = place.y; y < place.y + place.h; y++) {
        expect(taken.has(`${x} ${y}`), title).toBe(false);
        taken.add(`${x} ${y}`);
      }
    }
  }
});
