/** `values.schema.json` accepts the values that the chart comes with and its README shows, and refuses what cannot work. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { ROOT } from "../docs/markdown.ts";
import { DEPLOY, documentedFile } from "./documents.ts";

const chart = join(DEPLOY, "helm/sallyport");
const defaults = parse(readFileSync(join(chart, "values.yaml"), "utf8")) as Values;
const schema = z.fromJSONSchema(
  JSON.parse(
    readFileSync(join(chart, "values.schema.json"), "utf8"),
  ) as z.core.JSONSchema.JSONSchema,
);

type Values = { readonly [key: string]: unknown };

/** As Helm does it: mappings are merged, everything else replaces. */
function over(under: Values, given: Values): Values {
  const merged = Object.entries(given).map(([key, value]) => {
    const before = under[key];
    return [key, isValues(before) && isValues(value) ? over(before, value) : value] as const;
  });
  return { ...under, ...Object.fromEntries(merged) };
}

function isValues(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const accepts = (given: Values): boolean => schema.safeParse(over(defaults, given)).success;

test("the values of the chart and of its README are accepted", () => {
  expect(schema.safeParse(defaults)).toMatchObject({ success: true });
  const standalone: Values = parse(
    documentedFile("helm/sallyport/README.md", "values-standalone.yaml"),
  );
  expect(accepts(standalone)).toBe(true);
  const dependency = parse(documentedFile("helm/sallyport/README.md", "values.yaml")) as Values;
  expect(accepts(dependency["sallyport"] as Values)).toBe(true);
  expect(accepts({ global: { any: "thing" } })).toBe(true);
  expect(accepts({ config: { server: { tls: "off" }, admin: {} }, secrets: { tls: "" } })).toBe(
    true,
  );
});

test.each<Values>([
  { replica: 3 },
  { replicas: "3" },
  { mode: "proxy" },
  { image: { pullPolicy: "Sometimes" } },
  { image: { repository: "" } },
  { config: { server: { listen: "0.0.0.0:9443" } } },
  { config: { admin: "off" } },
  { config: { admin: { listen: "0.0.0.0:9000" } } },
  { config: { upstreams: { app: ["http://127.0.0.1:8080"] } } },
  { secrets: { user: "x" } },
  { service: { port: 70_000 } },
  { podMonitor: { enabled: "yes" } },
  { podMonitor: { interval: "often" } },
  { networkPolicy: { enabled: null } },
  { resources: { limit: {} } },
])("%j is refused", (given) => {
  expect(accepts(given)).toBe(false);
});

test("every value of values.yaml is in the schema, and no other", () => {
  const { properties } = z.toJSONSchema(schema) as { properties: object };
  const { global: _, ...told } = properties as Values;
  expect(Object.keys(told).toSorted()).toEqual(Object.keys(defaults).toSorted());
});

test("the chart, the image and the manifests are of Sallyport's version", () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    version: string;
  };
  const about = parse(readFileSync(join(chart, "Chart.yaml"), "utf8")) as Values;
  expect([about["version"], about["appVersion"]]).toEqual([version, version]);
  const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
  expect(/^ARG VERSION=(.*)$/m.exec(dockerfile)?.[1]).toBe(version);
  const manifests = globSync("kubernetes/**/*.yaml", { cwd: DEPLOY }).flatMap((name) => [
    ...readFileSync(join(DEPLOY, name), "utf8").matchAll(/image: sallyport:(\S+)/g),
  ]);
  expect(new Set(manifests.map(([, tag]) => tag))).toEqual(new Set([version]));
});
