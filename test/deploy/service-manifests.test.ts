/** The shared service of deploy/kubernetes/service is hardened like the sidecar, admits only proxies that ask, and starts. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { command, type Ended } from "../cli/command.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { DEPLOY } from "./documents.ts";
import {
  expectHardened,
  expectNoServiceAccountToken,
  expectProbes,
  expectTimeToStop,
} from "./expectations.ts";
import { containerOf, type Manifest, only, readManifests } from "./manifests.ts";
import { mountVolumes } from "./pod.ts";
import { filledSecrets } from "./secrets.ts";

const kubernetes = join(DEPLOY, "kubernetes");
const textOf = (file: string): string => readFileSync(join(kubernetes, file), "utf8");
const configuration = textOf("service/config.yaml");
const NO_MANIFESTS = ["config.yaml", "kustomization.yaml"];
const made = readdirSync(join(kubernetes, "service"))
  .filter((name) => !NO_MANIFESTS.includes(name))
  .flatMap((name) => readManifests(textOf(join("service", name))));
const { spec } = only(made, "Deployment");
const pod = spec.template.spec;
const labels = spec.template.metadata?.labels;
const container = containerOf(pod, "sallyport");

test("the kustomization names every file", () => {
  const { resources, configMapGenerator } = parse(textOf("service/kustomization.yaml")) as {
    resources: string[];
    configMapGenerator: readonly [{ files: string[] }];
  };
  const named = [...resources, ...configMapGenerator[0].files, "kustomization.yaml"];
  expect(named.toSorted()).toEqual(readdirSync(join(kubernetes, "service")).toSorted());
});

test("the pod is hardened, has probes, no token of an account, and enough time to stop", () => {
  expect(pod.containers).toEqual([container]);
  expectProbes(container);
  expectHardened(pod);
  expectNoServiceAccountToken(pod);
  expectTimeToStop(pod, configuration);
  expect(pod.serviceAccountName).toBe(only(made, "ServiceAccount").metadata.name);
});

test("the container is that of the sidecar, but for what only a sidecar needs", () => {
  const patch = readManifests(`${textOf("sidecar/pod.yaml")}      containers: []\n`);
  const sidecar = only(patch, "Deployment").spec.template.spec;
  const { restartPolicy: _, volumeMounts = [], ...rest } = containerOf(sidecar, "sallyport");
  const hidden = "no-service-account-token";
  const mounts = volumeMounts.filter(({ name }) => name !== hidden);
  expect(container).toEqual({ ...rest, volumeMounts: mounts });
  expect(pod.volumes).toEqual(sidecar.volumes?.filter(({ name }) => name !== hidden));
});

test("everything around the pods selects them, and the autoscaler alone counts them", () => {
  expect(labels).toMatchObject(spec.selector?.matchLabels ?? { none: "" });
  expect(labels).toMatchObject(only(made, "Service").spec.selector);
  expect(labels).toMatchObject(only(made, "PodDisruptionBudget").spec.selector.matchLabels);
  expect(labels).toMatchObject(only(made, "NetworkPolicy").spec.podSelector.matchLabels);
  for (const { labelSelector } of pod.topologySpreadConstraints ?? []) {
    expect(labels).toMatchObject(labelSelector.matchLabels);
  }
  expect(pod.topologySpreadConstraints).toHaveLength(2);
  const { scaleTargetRef, minReplicas } = only(made, "HorizontalPodAutoscaler").spec;
  expect(scaleTargetRef.name).toBe(only(made, "Deployment").metadata.name);
  expect(minReplicas).toBeGreaterThanOrEqual(2);
  expect(spec.replicas).toBeUndefined();
});

test("only namespaces of proxies reach the port, and only the monitoring the metrics", () => {
  const admitted = only(made, "NetworkPolicy").spec.ingress.map(({ from, ports }) => [
    from,
    ports.map(({ port }) => port),
  ]);
  const namespaces = (matchLabels: object): object[] => [{ namespaceSelector: { matchLabels } }];
  expect(admitted).toEqual([
    [namespaces({ sallyport: "asks" }), [8443]],
    [namespaces({ "kubernetes.io/metadata.name": "monitoring" }), [9464]],
  ]);
  const targets = only(made, "Service").spec.ports.map(({ targetPort }) => targetPort);
  expect(new Set(targets)).toEqual(new Set([8443]));
});

test("`check` in the pod passes, and names what the routes decide", async () => {
  const ended = await checked(configuration);
  expect(ended).toMatchObject({ code: 0, err: "" });
  expect(ended.out).toContain("decided only");
});

test("`check` in the pod refuses a configuration in which nobody may ask", async () => {
  const { code } = await checked(configuration.replace(/from: \[.*\]/, "from: []"));
  expect(code).toBe(78);
});

async function checked(text: string): Promise<Ended> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const config: Manifest = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "sallyport-config" },
    data: { "config.yaml": text },
  };
  const manifests = [...made, config, ...(await filledSecrets())];
  await mountVolumes({ root: directory.path, pod, manifests }, container);
  return command(["check", "--config", join(directory.path, "etc/sallyport/config.yaml")]);
}
