/**
 * Resources around the pods in the sample and the chart: disruption budget, spread, replicas, account, monitoring,
 * Ingress.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type ChartRenderer,
  chartRenderer,
  RENDERER_TIMEOUT,
  whyNoChart,
} from "../deploy/chart-renderer.ts";
import { DEPLOY } from "../deploy/documents.ts";
import { kustomized, whyNoKustomize } from "../deploy/kubectl.ts";
import { type Manifest, only, readManifests } from "../deploy/manifests.ts";
import { titled } from "../deploy/titled.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const NGINX = "nginx.ingress.kubernetes.io";

const UPSTREAMS = { app: { targets: ["http://orders.shop.svc:8080"] } };
const noKustomize = whyNoKustomize();
const noChart = whyNoChart();

/** Expects that the budget and the spread constraints select the pods of the Deployment. */
function expectBudgetAndSpread(made: readonly Manifest[]): void {
  const { metadata, spec } = only(made, "Deployment").spec.template;
  const { labels } = metadata ?? {};
  expect(labels).toMatchObject(only(made, "PodDisruptionBudget").spec.selector.matchLabels);
  const constraints = spec.topologySpreadConstraints ?? [];
  expect(constraints).toHaveLength(2);
  for (const { labelSelector } of constraints) {
    expect(labels).toMatchObject(labelSelector.matchLabels);
  }
  const account = only(made, "ServiceAccount");
  expect(spec.serviceAccountName).toBe(account.metadata.name);
  expect([spec, account].map((each) => each.automountServiceAccountToken)).toEqual([false, false]);
}

test.skipIf(noKustomize !== undefined)(
  titled("the sample in production", noKustomize),
  async () => {
    const made = readManifests(await kustomized(join(DEPLOY, "kubernetes/sample-in-production")));
    expectBudgetAndSpread(made);
    const { metadata, spec } = only(made, "Deployment");
    expect(only(made, "HorizontalPodAutoscaler").spec.scaleTargetRef.name).toBe(metadata.name);
    // The autoscaler decides; a number here would undo that with every apply.
    expect(spec.replicas).toBeUndefined();
  },
);

test.skipIf(noKustomize !== undefined)(titled("the shared service", noKustomize), async () => {
  const made = readManifests(await kustomized(join(DEPLOY, "kubernetes/service")));
  expectBudgetAndSpread(made);
  expect(new Set(made.map(({ metadata }) => metadata.namespace))).toEqual(new Set(["sallyport"]));
  // A changed configuration rolls the pods.
  const { name } = only(made, "ConfigMap").metadata;
  expect(name).toMatch(/^sallyport-config-\w+$/);
  expect(JSON.stringify(only(made, "Deployment").spec.template.spec.volumes)).toContain(name);
});

describe.skipIf(noChart !== undefined)(titled("the chart", noChart), () => {
  let directory: TemporaryDirectory;
  let charts: ChartRenderer;

  beforeAll(async () => {
    directory = await temporaryDirectory();
    charts = await chartRenderer(directory.path);
  }, RENDERER_TIMEOUT);
  afterAll(() => directory?.close());

  async function rendered(values: object) {
    return readManifests(await charts.render(join(DEPLOY, "helm/sallyport"), values));
  }

  test("has a budget, spread constraints and an account by default", async () => {
    expectBudgetAndSpread(await rendered({ config: { upstreams: UPSTREAMS } }));
  });

  test("has values for everything that a cluster needs around it", async () => {
    const made = await rendered({
      config: { upstreams: UPSTREAMS },
      replicas: 3,
      autoscaling: { enabled: true, maxReplicas: 4 },
      ingress: { enabled: true, host: "orders.example.com", tlsSecret: "orders-tls" },
      podDisruptionBudget: { enabled: false },
      service: { type: "LoadBalancer", externalTrafficPolicy: "Local" },
      serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
      serviceAccount: { create: false, name: "other" },
      priorityClassName: "important",
      deploymentAnnotations: { "example.com/owner": "shop" },
      strategy: { rollingUpdate: { maxUnavailable: 0 } },
      topologySpreadConstraints: [],
    });
    const deployment = only(made, "Deployment");
    const { replicas, template, strategy } = deployment.spec;
    expect(deployment.metadata.annotations).toEqual({ "example.com/owner": "shop" });
    expect(strategy).toEqual({ rollingUpdate: { maxUnavailable: 0 } });
    // The autoscaler decides; a number here would undo that with every upgrade.
    expect(replicas).toBeUndefined();
    expect(template.spec).toMatchObject({
      serviceAccountName: "other",
      priorityClassName: "important",
    });
    expect(template.spec.topologySpreadConstraints).toBeUndefined();
    const kinds = made.map(({ kind }) => kind);
    expect(kinds).not.toContain("PodDisruptionBudget");
    expect(kinds).not.toContain("ServiceAccount");

    const { spec: scaled } = only(made, "HorizontalPodAutoscaler");
    expect(scaled.scaleTargetRef.name).toBe(only(made, "Deployment").metadata.name);
    expect([scaled.minReplicas, scaled.maxReplicas]).toEqual([2, 4]);

    const { metadata, spec: ingress } = only(made, "Ingress");
    const service = only(made, "Service", "orders-sallyport");
    expect(metadata.annotations).toEqual({
      [`${NGINX}/backend-protocol`]: "HTTPS",
      [`${NGINX}/proxy-ssl-verify`]: "on",
      [`${NGINX}/proxy-ssl-secret`]: "shop/sallyport-ca",
      [`${NGINX}/proxy-ssl-name`]: "localhost",
    });
    expect(ingress.tls).toEqual([{ hosts: ["orders.example.com"], secretName: "orders-tls" }]);
    const [path] = ingress.rules.flatMap(({ http }) => http.paths);
    const port = { name: service.spec.ports[0]?.name };
    expect(path?.backend.service).toEqual({ name: service.metadata.name, port });
    expect(service.spec.externalTrafficPolicy).toBe("Local");

    const { metadata: monitor, spec: monitored } = only(made, "ServiceMonitor");
    expect(monitor.labels).toMatchObject({ release: "prometheus" });
    const chosen = made.filter(
      (each) =>
        each.kind === "Service" &&
        Object.entries(monitored.selector.matchLabels).every(
          ([name, value]) => each.metadata.labels?.[name] === value,
        ),
    );
    expect(chosen).toEqual([only(made, "Service", "orders-sallyport-admin")]);
    expect(monitored.endpoints.map(({ port, path }) => [port, path])).toEqual([
      ["admin", "/metrics"],
    ]);
  });

  test.each([
    [
      { verify: { caSecret: "own-ca", name: "orders.shop.svc" } },
      {
        "proxy-ssl-verify": "on",
        "proxy-ssl-secret": "shop/own-ca",
        "proxy-ssl-name": "orders.shop.svc",
      },
    ],
    [
      { annotations: { [`${NGINX}/proxy-ssl-secret`]: "other/ca" } },
      { "proxy-ssl-verify": "on", "proxy-ssl-secret": "other/ca", "proxy-ssl-name": "localhost" },
    ],
    [{ verify: { caSecret: "" } }, {}],
  ])("an Ingress with %j verifies Sallyport's certificate like this", async (values, expected) => {
    const made = await rendered({
      config: { upstreams: UPSTREAMS },
      ingress: { enabled: true, host: "orders.example.com", ...values },
    });
    const { annotations = {} } = only(made, "Ingress").metadata;
    const verification = Object.entries(annotations)
      .map(([name, value]) => [name.replace(`${NGINX}/`, ""), value] as const)
      .filter(([name]) => name.startsWith("proxy-ssl-"));
    expect(Object.fromEntries(verification)).toEqual(expected);
  });

  test("refuses an Ingress that verifies no name", async () => {
    const ingress = { enabled: true, host: "orders.example.com", verify: { name: "" } };
    const values = { config: { upstreams: UPSTREAMS }, ingress };
    await expect(rendered(values)).rejects.toThrow("ingress.verify.name is empty");
  });

  test("refuses an Ingress without a host", async () => {
    const values = { config: { upstreams: UPSTREAMS }, ingress: { enabled: true } };
    await expect(rendered(values)).rejects.toThrow("ingress.host is empty");
  });
});
