/** The table in `docs/reference/metrics.md` matches `/metrics`. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { createMetrics } from "../../src/observe/metrics/metrics.ts";
import { SIGN_IN } from "../../src/app/gate/remote-checks.ts";
import { OWN_ROUTES } from "../../src/observe/metrics/series.ts";
import { AUTHORIZERS } from "../../src/policy/remote/authorizer-kinds.ts";
import { TOKEN_CHECKS } from "../../src/tokens/remote/token-check-kinds.ts";
import { outcomeWith } from "../observe/outcomes.ts";
import { codeIn, codesIn, readDocument, ROOT } from "./markdown.ts";

interface Shown {
  readonly type: string;
  readonly labels: readonly string[];
  /** The values of each label. */
  readonly values: ReadonlyMap<string, ReadonlySet<string>>;
}

const reference = readDocument("docs/reference/metrics.md");
let shown: ReadonlyMap<string, Shown>;

/** Returns everything that `/metrics` can contain with one route and one upstream. */
beforeAll(async () => {
  const metrics = createMetrics({
    routes: ["orders"],
    upstreams: ["app"],
    stores: ["file"],
    version: "1.2.3",
    checks: [...TOKEN_CHECKS, ...AUTHORIZERS, SIGN_IN].map((kind) => ({ kind, name: "a" })),
    mirrors: ["app"],
  });
  metrics.gauges.sharedState = () => ({ up: true, lost: 0 });
  metrics.gauges.storeState = () => ({ connections: 0, outdated: 0 });
  metrics.gauges.certificateEnds = () => [
    { of: "tls_certificate", name: "localhost", notAfter: 1 },
    { of: "tls_client_ca", notAfter: 1 },
    { of: "upstream_certificate", name: "app", notAfter: 1 },
    { of: "upstream_ca", name: "app", notAfter: 1 },
  ];
  const fetches = { fetchedAt: 1, stale: false, failingSince: undefined, succeeded: 1, failed: 1 };
  const usable = { usable: true, keys: 1, readAt: 1 };
  metrics.gauges.issuers = () => [{ issuer: "https://id.example.com", ...usable, fetches }];
  metrics.gauges.keyStores = () => [
    { name: "postgres", keys: 1, nextExpiry: Infinity, failingSince: undefined },
  ];
  const load = { weight: 1, inFlight: 0, oldestMs: 0, failures: 0 };
  metrics.gauges.targets = async () =>
    ["http1", "http2", "h2c", "auto"].map((protocol) => ({
      upstream: "app",
      target: "http://a:80",
      protocol,
      state: "available" as const,
      ...load,
    }));
  for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"]) {
    metrics.requestStarted();
    metrics.requestFinished(outcomeWith({ method }));
  }
  metrics.upstreamAnswered("app", 200, 0.1);
  shown = readExposition(await metrics.text());
});

/** `store`; `result` = `ok`, `failed` */
function labelsIn(cell = ""): { label: string; values: string[] }[] {
  return cell.split("; ").flatMap((part) => {
    const [labels, values] = part.split(" = ");
    return codesIn(labels).map((label) => ({ label, values: codesIn(values).toSorted() }));
  });
}

const rows = reference.rows("metric", "type", "labels", "meaning").map((row) => ({
  name: codeIn(row["metric"]),
  type: row["type"],
  labels: labelsIn(row["labels"]),
}));

test("exactly Sallyport's metrics are listed, with their types and labels", () => {
  const listed = rows.map((row) => ({
    ...row,
    labels: row.labels.map(({ label }) => label).toSorted(),
  }));
  const ours = [...shown]
    .filter(([name]) => name.startsWith("sallyport_"))
    .map(([name, { type, labels }]) => ({ name, type, labels: labels.toSorted() }));
  expect(listed.toSorted(byName)).toEqual(ours.toSorted(byName));
});

test("exactly the labels with a closed set of values are listed, with these values", () => {
  const NAMES = ["route", "upstream", "target", "issuer", "store", "name", "code"];
  const listed = rows.flatMap(({ name, labels }) =>
    labels
      .filter(({ values }) => values.length > 0)
      .map(({ label, values }) => ({ name: `${name} ${label}`, values })),
  );
  const closed = [...shown]
    .filter(([name]) => name.startsWith("sallyport_"))
    .flatMap(([name, { values }]) =>
      [...values]
        .filter(([label]) => ![...NAMES, "version", "node"].includes(label))
        .map(([label, set]) => ({ name: `${name} ${label}`, values: [...set].toSorted() })),
    );
  expect(listed.toSorted(byName)).toEqual(closed.toSorted(byName));
});

test("metrics documented as missing are missing", () => {
  const leftOut = [...reference.text.matchAll(/`(nodejs_\w+_total)`/g)].map(
    ([, name = ""]) => name,
  );
  expect(leftOut).toHaveLength(3);
  for (const name of leftOut) expect(shown.has(name)).toBe(false);
  expect(shown.has("process_resident_memory_bytes")).toBe(true);
});

function readExposition(text: string): Map<string, Shown> {
  const found = new Map<string, Shown>();
  for (const [, name = "", type = ""] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    const values = new Map<string, Set<string>>();
    const suffix = type === "histogram" ? "_bucket" : "";
    for (const [, labels = ""] of text.matchAll(new RegExp(`^${name}${suffix}\\{(.*)\\} `, "gm"))) {
      for (const [, label = "", value = ""] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
        if (label === "le") continue;
        values.set(label, (values.get(label) ?? new Set<string>()).add(value));
      }
    }
    found.set(name, { type, labels: [...values.keys()], values });
  }
  return found;
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}

test("the names that Sallyport's own responses have as route are listed", () => {
  const [, names] = /^`route` is the name of a route, ([^;]*);/m.exec(reference.text) ?? [];
  expect(codesIn(names).toSorted()).toEqual(OWN_ROUTES.toSorted());
  const named = globSync("src/server/{endpoints,browser}/*.ts", { cwd: ROOT })
    .map((file) => readFileSync(join(ROOT, file), "utf8"))
    .flatMap((text) => [...text.matchAll(/^ +name: "(\w+)",\n +methods:/gm)]);
  expect(OWN_ROUTES).toEqual(expect.arrayContaining(named.map(([, name]) => name)));
  expect(named.length).toBeGreaterThan(6);
});
