/** `values.schema.json` accepts the chart's default values and those in its README, and refuses invalid ones. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { valuesSchema } from "../../build/values-schema.ts";
import { ROOT } from "../docs/markdown.ts";
import { DEPLOY, documentedFile } from "./documents.ts";

const chart = join(DEPLOY, "helm/sallyport");
const defaults = parse(readFileSync(join(chart, "values.yaml"), "utf8")) as Values;
const schemaText = readFileSync(join(chart, "values.schema.json"), "utf8");
const schema = z.fromJSONSchema(JSON.parse(schemaText) as z.core.JSONSchema.JSONSchema);

type Values = { readonly [key: string]: unknown };

/** Merges values the way Helm does: mappings are merged, anything else is replaced. */
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
  const production: Values = parse(
    documentedFile("helm/sallyport/README.md", "values-production.yaml"),
  );
  expect(accepts(production)).toBe(true);
  const service: Values = parse(documentedFile("helm/sallyport/README.md", "values-service.yaml"));
  expect(accepts(service)).toBe(true);
  const dependency = parse(documentedFile("helm/sallyport/README.md", "values.yaml")) as Values;
  expect(accepts(dependency["sallyport"] as Values)).toBe(true);
  expect(accepts({ global: { any: "thing" } })).toBe(true);
  expect(accepts({ config: { server: { tls: "off" }, admin: {} }, secrets: { tls: "" } })).toBe(
    true,
  );
});

test("the configuration is checked against config.schema.json", () => {
  // To update it: npm run chart:schema
  expect(JSON.parse(schemaText)).toEqual(valuesSchema());
  // Helm is written in Go, whose regular expressions have no lookaround.
  expect(schemaText).not.toMatch(/\(\?<?[=!]/);
  // Otherwise, every alternative that does not match would be a separate error.
  expect(schemaText).not.toMatch(/"(?:any|one)Of"/);
});

test("every key of the configuration is accepted, except the ports", () => {
  const config = parse(readFileSync(join(ROOT, "config.yaml"), "utf8")) as Record<string, Values>;
  const { listen: _, ...server } = config["server"] ?? {};
  const { listen: __, ...admin } = config["admin"] ?? {};
  expect(schema.safeParse({ ...defaults, config: { ...config, server, admin } }).error).toBe(
    undefined,
  );
});

test.each<Values>([
  { log: { level: "${LEVEL:-info}" } },
  { server: { tls: false } },
  { server: { workers: "${WORKERS}", drain: { delay: "1m30s", timeout: "500ms" } } },
  { admin: { probes: [{ path: "/probes/app", upstream: "app", target: "/health" }] } },
  { identity: { headers: "oauth2-proxy" } },
  { identity: { headers: { subject: "x-user" } } },
  { users: [{ kind: "htpasswd", path: "users.htpasswd" }] },
  { users: [{ kind: "http", url: "https://old/login", status: { unknown: [404] } }] },
])("the configuration %j is accepted", (config) => {
  expect(accepts({ config })).toBe(true);
});

test.each<Values>([
  { log: { level: "debugg" } },
  { server: { drain: { delay: 10 } } },
  { server: { drain: { delay: "10" } } },
  { server: { timeout: "10s" } },
  { upstreams: { app: { targets: "http://app:8080" } } },
  { upstreams: { app: { connections: "many" } } },
  { routes: [{ path: "/" }] },
  { users: [{ kind: "nis", path: "users.yaml" }] },
])("the configuration %j is refused", (config) => {
  expect(accepts({ config })).toBe(false);
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
  { networkPolicy: { askers: "gateway" } },
  { resources: { limit: {} } },
])("%j is refused", (given) => {
  expect(accepts(given)).toBe(false);
});

test("the schema has exactly the values of values.yaml", () => {
  const { properties } = z.toJSONSchema(schema) as { properties: object };
  const { global: _, ...listed } = properties as Values;
  expect(Object.keys(listed).toSorted()).toEqual(Object.keys(defaults).toSorted());
});

test("the chart, the image and the manifests have Sallyport's version", () => {
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
