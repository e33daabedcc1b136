/** The chart renders valid manifests in both modes, with helm or with the libraries that helm uses. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import {
  type ChartRenderer,
  chartRenderer,
  RENDERER_TIMEOUT,
  whyNoChart,
} from "../deploy/chart-renderer.ts";
import { chartWithSidecar } from "../deploy/chart-with-sidecar.ts";
import { DEPLOY } from "../deploy/documents.ts";
import { expectHardened, expectProbes, expectTimeToStop } from "../deploy/expectations.ts";
import { containerOf, contentOf, only, readManifests } from "../deploy/manifests.ts";
import { titled } from "../deploy/titled.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const CHART = join(DEPLOY, "helm/sallyport");
const UPSTREAMS = { app: { targets: ["http://orders.shop.svc:8080"] } };
const DECISIONS = { from: ["10.244.0.0/16"] };
const missing = whyNoChart();

describe.skipIf(missing !== undefined)(titled("the chart", missing), () => {
  let directory: TemporaryDirectory;
  let charts: ChartRenderer;

  beforeAll(async () => {
    directory = await temporaryDirectory();
    charts = await chartRenderer(directory.path);
  }, RENDERER_TIMEOUT);
  afterAll(() => directory?.close());

  async function rendered(values: object, chart = CHART) {
    return readManifests(await charts.render(chart, values));
  }

  test("has its own Deployment in standalone mode", async () => {
    const made = await rendered({ config: { upstreams: UPSTREAMS } });
    expect(made.map(({ kind }) => kind).toSorted()).toEqual([
      "ConfigMap",
      "Deployment",
      "NetworkPolicy",
      "Pod",
      "PodDisruptionBudget",
      "Service",
      "Service",
      "ServiceAccount",
    ]);
    const { spec } = only(made, "Deployment", "orders-sallyport");
    const pod = spec.template.spec;
    const container = containerOf(pod, "sallyport");
    expect(pod.containers).toEqual([container]);
    expect(container.restartPolicy).toBeUndefined();
    expectProbes(container);
    expectHardened(pod);
    const configuration = contentOf(only(made, "ConfigMap"))["config.yaml"] ?? "";
    expectTimeToStop(pod, configuration);
    expect(configuration).toContain("http://orders.shop.svc:8080");

    const labels = spec.template.metadata?.labels;
    expect(labels).toMatchObject(spec.selector?.matchLabels ?? { none: "" });
    const services = ["orders-sallyport", "orders-sallyport-admin"].map((name) =>
      only(made, "Service", name),
    );
    for (const { spec: service } of services) expect(labels).toMatchObject(service.selector);
    const { spec: budget } = only(made, "PodDisruptionBudget", "orders-sallyport");
    expect(labels).toMatchObject(budget.selector.matchLabels);
    for (const { labelSelector } of pod.topologySpreadConstraints ?? []) {
      expect(labels).toMatchObject(labelSelector.matchLabels);
    }
    expect(pod.topologySpreadConstraints).toHaveLength(2);
    expect(only(made, "ServiceAccount", "orders-sallyport").automountServiceAccountToken).toBe(
      false,
    );
    expect(pod.serviceAccountName).toBe("orders-sallyport");
    expect(services.map(({ spec: { ports } }) => ports[0]?.targetPort)).toEqual([8443, 9464]);
  });

  test("lets the test pod reach the readiness endpoint", async () => {
    const made = await rendered({ config: { upstreams: UPSTREAMS } });
    const test = only(made, "Pod");
    expect(test.metadata.annotations?.["helm.sh/hook"]).toBe("test");
    expectHardened({ containers: [{ ...containerOf(test.spec, "ready"), name: "sallyport" }] });
    const url = containerOf(test.spec, "ready").args?.at(-1) ?? "";
    const { hostname, port, pathname } = new URL(url);
    expect([pathname, port]).toEqual(["/readyz", "9464"]);
    expect(only(made, "Service", hostname).spec.ports[0]?.port).toBe(9464);
    const admitted = only(made, "NetworkPolicy").spec.ingress.flatMap(({ from = [], ports }) =>
      ports[0]?.port === 9464 ? from : [],
    );
    expect(admitted).toContainEqual({ podSelector: { matchLabels: test.metadata.labels } });
  });

  test("applies all values", async () => {
    const made = await rendered({
      fullnameOverride: "gate",
      image: { repository: "sallyport", tag: "0.1.1", pullSecrets: [{ name: "registry" }] },
      config: {
        server: { tls: { selfSigned: true, certFile: null, keyFile: null } },
        upstreams: UPSTREAMS,
      },
      secrets: { tls: "", keys: "orders-keys" },
      env: [{ name: "SALLYPORT_LOG__LEVEL", value: "debug" }],
      extraVolumes: [{ name: "ca", secret: { secretName: "ca", defaultMode: 0o440 } }],
      extraVolumeMounts: [{ name: "ca", mountPath: "/etc/ca", readOnly: true }],
      podMonitor: { enabled: true, labels: { release: "prometheus" } },
      networkPolicy: { monitoringNamespace: "" },
      service: { type: "LoadBalancer", port: 8443, annotations: { a: "b" } },
      podAnnotations: { c: "d" },
      podLabels: { e: "f" },
      replicas: 3,
    });
    const { template, replicas } = only(made, "Deployment", "gate").spec;
    const container = containerOf(template.spec, "sallyport");
    expect(replicas).toBe(3);
    expect(template.metadata).toMatchObject({ labels: { e: "f" }, annotations: { c: "d" } });
    expect(container.image).toBe("sallyport:0.1.1");
    expect(container.env).toEqual([{ name: "SALLYPORT_LOG__LEVEL", value: "debug" }]);
    expect(container.volumeMounts?.map(({ name }) => name)).toEqual([
      "sallyport",
      "sallyport-keys",
      "ca",
    ]);
    expect(JSON.stringify(template.spec.volumes)).toContain("orders-keys");
    expect(JSON.stringify(template.spec.volumes)).not.toContain("tls.key");
    expect(template.spec.imagePullSecrets).toEqual([{ name: "registry" }]);
    expect(contentOf(only(made, "ConfigMap"))["config.yaml"]).not.toContain("certFile");
    expect(only(made, "PodMonitor").metadata.labels).toMatchObject({ release: "prometheus" });
    expect(JSON.stringify(only(made, "NetworkPolicy"))).not.toContain("namespaceSelector");
    expect(only(made, "Service", "gate").spec).toMatchObject({
      type: "LoadBalancer",
      ports: [{ port: 8443 }],
    });
  });

  test("rolls the pods when the configuration changes", async () => {
    const annotations: unknown[] = [];
    for (const level of ["info", "debug"]) {
      const made = await rendered({ config: { upstreams: UPSTREAMS, log: { level } } });
      annotations.push(only(made, "Deployment").spec.template.metadata?.annotations);
    }
    expect(annotations[0]).not.toEqual(annotations[1]);
  });

  test("refuses to render without upstreams", async () => {
    await expect(rendered({})).rejects.toThrow("config.upstreams is empty");
  });

  test("forwards nothing in service mode, and admits only proxies that ask", async () => {
    const made = await rendered({ mode: "service", config: { decisions: DECISIONS } });
    const standalone = await rendered({ config: { upstreams: UPSTREAMS } });
    const kinds = (all: typeof made): string[] => all.map(({ kind }) => kind);
    expect(kinds(made)).toEqual(kinds(standalone));
    const { metadata, spec } = only(made, "Deployment").spec.template;
    // Only the hash of the configuration differs.
    expect(spec).toEqual(only(standalone, "Deployment").spec.template.spec);
    expect(metadata?.labels).toMatchObject(
      only(made, "NetworkPolicy").spec.podSelector.matchLabels,
    );
    const config: unknown = parse(contentOf(only(made, "ConfigMap"))["config.yaml"] ?? "");
    expect(config).toMatchObject({
      decisions: { ...DECISIONS, grpc: true, only: true },
      server: { http2: true },
    });
    expect(config).not.toHaveProperty("upstreams");
    const [first] = only(made, "NetworkPolicy").spec.ingress;
    expect(first).toEqual({
      from: [{ namespaceSelector: { matchLabels: { sallyport: "asks" } } }],
      ports: [{ protocol: "TCP", port: 8443 }],
    });
    const { ports } = only(made, "Service", "orders-sallyport").spec;
    expect(ports.map(({ name, port }) => [name, port])).toEqual([
      ["https", 443],
      ["grpc", 8443],
    ]);
  });

  test("has values for the proxies that ask in service mode", async () => {
    const made = await rendered({
      mode: "service",
      config: {
        decisions: { ...DECISIONS, grpc: false, only: false },
        upstreams: UPSTREAMS,
      },
      networkPolicy: { askers: null },
      replicas: 5,
    });
    const config: unknown = parse(contentOf(only(made, "ConfigMap"))["config.yaml"] ?? "");
    expect(config).toMatchObject({ decisions: { grpc: false, only: false }, upstreams: UPSTREAMS });
    expect(config).not.toHaveProperty("server.http2");
    expect(only(made, "Deployment").spec.replicas).toBe(5);
    expect(only(made, "NetworkPolicy").spec.ingress[0]?.from).toBeUndefined();
  });

  test("refuses to render a service that nobody may ask, or that clients reach", async () => {
    await expect(rendered({ mode: "service" })).rejects.toThrow("config.decisions is empty");
    const ingress = { enabled: true, host: "orders.example.com" };
    const values = { mode: "service", config: { decisions: DECISIONS }, ingress };
    await expect(rendered(values)).rejects.toThrow("ingress.enabled is true");
  });

  test("adds the sidecar to the chart of the README", async () => {
    const chart = await chartWithSidecar(join(directory.path, "orders"));
    const made = await rendered({}, chart);
    expect(made.map(({ kind }) => kind).toSorted()).toEqual([
      "ConfigMap",
      "Deployment",
      "NetworkPolicy",
      "Service",
    ]);
    const { template } = only(made, "Deployment", "orders").spec;
    const sidecar = containerOf(template.spec, "sallyport");
    expect(template.spec.initContainers).toEqual([sidecar]);
    expect(sidecar.restartPolicy).toBe("Always");
    expectProbes(sidecar);
    expectHardened(template.spec);
    expectTimeToStop(template.spec, contentOf(only(made, "ConfigMap"))["config.yaml"] ?? "");
    expect(template.metadata?.labels).toMatchObject(
      only(made, "NetworkPolicy").spec.podSelector.matchLabels,
    );
  });

  test("refuses to be used as a sidecar in standalone mode", async () => {
    const chart = await chartWithSidecar(join(directory.path, "mistaken"));
    const values = { sallyport: { mode: "standalone", config: { upstreams: UPSTREAMS } } };
    await expect(rendered(values, chart)).rejects.toThrow("the mode of sallyport is not sidecar");
  });

  test("renders the same sidecar as the plain manifests", async () => {
    const made = await rendered({}, await chartWithSidecar(join(directory.path, "same")));
    const files = ["deployment", "config-map"];
    const texts = files.map((name) =>
      readFile(join(DEPLOY, `kubernetes/plain/${name}.yaml`), "utf8"),
    );
    const written = readManifests((await Promise.all(texts)).join("\n---\n"));
    const plain = only(written, "Deployment").spec.template.spec;
    const pod = only(made, "Deployment").spec.template.spec;
    expect(pod.initContainers).toEqual(plain.initContainers);
    expect(pod.securityContext).toEqual(plain.securityContext);
    expect(pod.terminationGracePeriodSeconds).toBe(plain.terminationGracePeriodSeconds);
    const [config, plainConfig] = [made, written].map((all) =>
      parse(contentOf(only(all, "ConfigMap"))["config.yaml"] ?? ""),
    );
    expect(config).toEqual(plainConfig);
    const name = only(made, "ConfigMap").metadata.name;
    const volumes = JSON.stringify(pod.volumes).replaceAll(`"${name}"`, '"sallyport-config"');
    expect(JSON.parse(volumes)).toEqual(plain.volumes);
  });
});
