/** The handwritten manifests are valid, and equal to those of the component. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { command, type Ended } from "../cli/command.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { DEPLOY, documentedFile } from "./documents.ts";
import {
  expectHardened,
  expectNoServiceAccountToken,
  expectProbes,
  expectTimeToStop,
} from "./expectations.ts";
import { containerOf, contentOf, type Manifest, only, readManifests } from "./manifests.ts";
import { mountVolumes } from "./pod.ts";
import { exampleSecrets, filledSecrets } from "./secrets.ts";

const kubernetes = join(DEPLOY, "kubernetes");
const plainFiles = readdirSync(join(kubernetes, "plain")).filter((name) => name.endsWith(".yaml"));
const plain = plainFiles.flatMap((name) => manifestsOf(join("plain", name)));
const pod = only(plain, "Deployment").spec.template.spec;
const sidecar = containerOf(pod, "sallyport");

function textOf(file: string): string {
  return readFileSync(join(kubernetes, file), "utf8");
}

function manifestsOf(file: string): Manifest[] {
  return readManifests(textOf(file));
}

describe("the plain manifests", () => {
  test("have a native sidecar with probes, and a fully hardened pod", () => {
    expect(pod.initContainers).toEqual([sidecar]);
    expect(sidecar.restartPolicy).toBe("Always");
    expectProbes(sidecar);
    expectHardened(pod);
    expectNoServiceAccountToken(pod);
  });

  test("grant enough time to stop", () => {
    expectTimeToStop(pod, configuration());
  });

  test("route clients to Sallyport, and to nothing else", () => {
    const { labels } = only(plain, "Deployment").spec.template.metadata ?? {};
    const { spec: service } = only(plain, "Service");
    expect(labels).toMatchObject(service.selector);
    expect(service.ports.map(({ targetPort }) => targetPort)).toEqual([8443]);
    const { spec: policy } = only(plain, "NetworkPolicy");
    expect(labels).toMatchObject(policy.podSelector.matchLabels);
    const open = policy.ingress.filter(({ from }) => from === undefined);
    expect(open.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual([8443]);
    const [monitor] = manifestsOf("pod-monitor/pod-monitor.yaml");
    if (monitor?.kind !== "PodMonitor") throw new Error("there is no PodMonitor");
    expect(labels).toMatchObject(monitor.spec.selector.matchLabels);
    const scraped = monitor.spec.podMetricsEndpoints.map(({ port, path }) => [port, path]);
    expect(scraped).toEqual([["admin", "/metrics"]]);
  });

  test("are equal to the component", () => {
    // A Deployment must have containers, but the patch only changes the pod and adds none.
    const patch = readManifests(`${textOf("sidecar/pod.yaml")}      containers: []\n`);
    const patched = only(patch, "Deployment").spec.template.spec;
    expect({ ...pod, containers: [] }).toEqual({ ...patched, containers: [] });
    expect(only(plain, "NetworkPolicy")).toEqual(manifestsOf("sidecar/network-policy.yaml")[0]);
    expect(parse(configuration())).toEqual(parse(textOf("sidecar/config.yaml")));
    const [{ value: lifecycle }] = parse(textOf("sidecar/application.yaml")) as [
      { value: unknown },
    ];
    expect(pod.containers[0]?.lifecycle).toEqual(lifecycle);
    const [{ value: first }] = parse(textOf("sidecar/service.yaml")) as [{ value: unknown }];
    expect(only(plain, "Service").spec.ports).toEqual([first]);
  });

  test("contain the sample application, on the loopback", () => {
    const [before] = only(manifestsOf("sample/deployment.yaml"), "Deployment").spec.template.spec
      .containers;
    const { env, lifecycle: _, ...application } = containerOf(pod, "orders");
    expect(before).toMatchObject(application);
    expect(env).toContainEqual({ name: "HOST", value: "127.0.0.1" });
  });
});

describe("`check` in the pod", () => {
  test("passes with complete Secrets", async () => {
    expect(await checked([...plain, ...(await filledSecrets())])).toMatchObject({
      code: 0,
      err: "",
    });
  });

  test("refuses each placeholder of the example", async () => {
    const filled = await filledSecrets();
    for (const secret of await exampleSecrets()) {
      const others = filled.filter(({ metadata }) => metadata.name !== secret.metadata.name);
      const { code } = await checked([...plain, ...others, secret]);
      expect([secret.metadata.name, code]).toEqual([secret.metadata.name, 78]);
    }
  });

  test("passes with the configuration of the README", async () => {
    const configured = readManifests(
      documentedFile("kubernetes/README.md", "patched/sallyport-config.yaml"),
    );
    const others = plain.filter(({ kind }) => kind !== "ConfigMap");
    const all = [...others, ...configured, ...(await filledSecrets())];
    expect(await checked(all)).toMatchObject({ code: 0, err: "" });
  });
});

function configuration(): string {
  return contentOf(only(plain, "ConfigMap"))["config.yaml"] ?? "";
}

async function checked(manifests: readonly Manifest[]): Promise<Ended> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await mountVolumes({ root: directory.path, pod, manifests }, sidecar);
  return command(["check", "--config", join(directory.path, "etc/sallyport/config.yaml")]);
}
