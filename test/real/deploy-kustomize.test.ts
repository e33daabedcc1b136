/** The component adds the sidecar to unmodified workloads, as the README of deploy/kubernetes describes. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { DEPLOY, documentedFile } from "../deploy/documents.ts";
import {
  expectHardened,
  expectNoServiceAccountToken,
  expectProbes,
  expectTimeToStop,
} from "../deploy/expectations.ts";
import { kubectl, kustomized, whyNoKustomize } from "../deploy/kubectl.ts";
import {
  containerOf,
  contentOf,
  type Manifest,
  only,
  type PodSpec,
  readManifests,
} from "../deploy/manifests.ts";
import { exampleSecrets, EXAMPLE, secretFiles } from "../deploy/secrets.ts";
import { titled } from "../deploy/titled.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const README = "kubernetes/README.md";
const kubernetes = join(DEPLOY, "kubernetes");
const missing = whyNoKustomize();

describe.skipIf(missing !== undefined)(titled("the component", missing), () => {
  test("adds the sidecar to the sample with the README's kustomization", async () => {
    const built = await builtBeside({
      "kustomization.yaml": documentedFile(README, "kustomization.yaml"),
    });
    const deployment = only(built, "Deployment", "orders");
    const pod = deployment.spec.template.spec;
    expectSidecar(built, pod);
    // The rest of the Deployment is unchanged.
    const before = only(await sample(), "Deployment").spec.template.spec.containers;
    expect(pod.containers).toEqual([{ ...before[0], lifecycle: sleeping(10) }]);
    expect(deployment.spec.selector).toEqual({ matchLabels: { app: "orders" } });
    const { labels } = deployment.spec.template.metadata ?? {};
    expect(labels).toEqual({ app: "orders", sallyport: "sidecar" });
    expect(only(built, "NetworkPolicy").spec.podSelector.matchLabels).toEqual({
      sallyport: "sidecar",
    });
    const { spec: service } = only(built, "Service", "orders");
    expect(service.selector).toEqual({ app: "orders" });
    expect(service.ports).toEqual([
      { name: "https", port: 443, protocol: "TCP", targetPort: 8443 },
    ]);
  });

  test("together with the sample's own changes results in the manifests in plain/", async () => {
    const built = readManifests(await kustomized(join(kubernetes, "sample-with-sidecar")));
    const files = ["deployment", "service", "config-map", "network-policy"];
    const texts = files.map((name) => readFile(join(kubernetes, `plain/${name}.yaml`), "utf8"));
    const plain = readManifests((await Promise.all(texts)).join("\n---\n"));
    const pod = only(built, "Deployment").spec.template.spec;
    const config = only(built, "ConfigMap").metadata.name;
    expect(config).toMatch(/^sallyport-config-\w+$/);
    const withoutHash = JSON.parse(
      JSON.stringify(pod).replaceAll(config, "sallyport-config"),
    ) as PodSpec;
    expect(withoutHash).toEqual(only(plain, "Deployment").spec.template.spec);
    const { metadata, spec } = only(built, "Service");
    const { sallyport, ...labels } = metadata.labels ?? {};
    expect(sallyport).toBe("inject");
    expect({ ...only(built, "Service"), metadata: { ...metadata, labels }, spec }).toEqual(
      only(plain, "Service"),
    );
    expect(only(built, "NetworkPolicy")).toEqual(only(plain, "NetworkPolicy"));
  });

  test("allows other configurations, images and settings, as the README shows", async () => {
    const built = await builtBeside({
      "kustomization.yaml": documentedFile(README, "patched/kustomization.yaml"),
      "sallyport-config.yaml": documentedFile(README, "patched/sallyport-config.yaml"),
    });
    const pod = only(built, "Deployment").spec.template.spec;
    expect(contentOf(only(built, "ConfigMap"))["config.yaml"]).toContain("audience: orders");
    expectSidecar(built, pod);
    expect(pod.terminationGracePeriodSeconds).toBe(300);
    expect(only(built, "NetworkPolicy").metadata.name).toBe("orders-sallyport");
    expect(containerOf(pod, "sallyport").image).toBe("sallyport:0.1.1");
    expect(only(built, "PodMonitor").spec.selector.matchLabels).toEqual({ sallyport: "sidecar" });
  });

  test.each(["StatefulSet", "DaemonSet", "Job"] as const)(
    "adds it only to a %s with the label, next to what its pod already has",
    async (kind) => {
      const built = await builtBeside({
        "kustomization.yaml": documentedFile(README, "kustomization.yaml").replace(
          "  - service.yaml\n",
          "  - other.yaml\n",
        ),
        "deployment.yaml": workload("Deployment", "left-alone", "{ app: left-alone }"),
        "other.yaml": workload(kind, "orders", "{ sallyport: inject }"),
      });
      const pod = only(built, kind, "orders").spec.template.spec;
      expectSidecar(built, pod);
      expect(pod.initContainers?.map(({ name }) => name)).toEqual(["sallyport", "first"]);
      expect(pod.volumes?.map(({ name }) => name).toSorted()).toEqual([
        "no-service-account-token",
        "own",
        "sallyport",
        "sallyport-keys",
      ]);
      const { spec } = only(built, "Deployment", "left-alone").spec.template;
      expect(spec.initContainers?.map(({ name }) => name)).toEqual(["first"]);
      expect(spec.containers[0]?.lifecycle).toBeUndefined();
    },
  );

  test("leaves other Services unchanged, and the other ports of a labelled Service", async () => {
    const service = (name: string, labels: string): string => `
apiVersion: v1
kind: Service
metadata: { name: ${name}, labels: ${labels} }
spec:
  selector: { app: ${name} }
  ports:
    - { name: http, port: 80, protocol: TCP, targetPort: 8080 }
    - { name: grpc, port: 9000, protocol: TCP, targetPort: 9000 }
`;
    const redis = service("redis", "{ app: redis }");
    const built = await builtBeside({
      "kustomization.yaml": documentedFile(README, "kustomization.yaml"),
      "service.yaml": `${service("orders", "{ app: orders, sallyport: inject }")}\n---\n${redis}`,
    });
    expect(only(built, "Service", "redis")).toEqual(readManifests(redis)[0]);
    expect(only(built, "Service", "orders").spec.ports).toEqual([
      { name: "https", port: 443, protocol: "TCP", targetPort: 8443 },
      { name: "grpc", port: 9000, protocol: "TCP", targetPort: 9000 },
    ]);
  });

  test("rolls the pods when the configuration changes", async () => {
    const kustomization = documentedFile(README, "kustomization.yaml");
    const [before, after] = await Promise.all(
      ["", "log: { level: debug }\n"].map(async (more) => {
        const configuration = await readFile(join(kubernetes, "sidecar/config.yaml"), "utf8");
        const built = await builtBeside({
          "kustomization.yaml": kustomization,
          "sidecar/config.yaml": configuration + more,
        });
        return only(built, "ConfigMap").metadata.name;
      }),
    );
    expect(before).not.toBe(after);
  });
});

describe.skipIf(missing !== undefined)(titled("the example Secrets", missing), () => {
  test("match the result of their commands", async () => {
    await using directory = await temporaryDirectory();
    await mkdir(join(directory.path, "keys"));
    for (const [name, content] of Object.entries(await secretFiles())) {
      await directory.write(name, content);
    }
    const example = await exampleSecrets();
    const lines = (await readFile(EXAMPLE, "utf8")).matchAll(/^# {3}kubectl (create secret .*)$/gm);
    const made = await Promise.all(
      [...lines].map(async ([, line = ""]) => {
        const args = [...line.split(" "), "--dry-run=client", "--output", "json"];
        const secret = JSON.parse(await kubectl(args, directory.path)) as Made;
        return shapeOf(secret.metadata.name, secret.type, secret.data);
      }),
    );
    const wanted = example.map((secret) => {
      if (secret.kind !== "Secret") throw new Error("the example holds something else");
      return shapeOf(secret.metadata.name, secret.type, secret.stringData);
    });
    expect(made).toEqual(wanted);
  });
});

interface Made {
  readonly metadata: { readonly name: string };
  readonly type: string;
  readonly data: object;
}

/** Describes a Secret. kubectl omits the type of a generic Secret, which the cluster sets to Opaque. */
function shapeOf(name: string, type: string | undefined, content: object | undefined): unknown {
  return { name, type: type ?? "Opaque", keys: Object.keys(content ?? {}).toSorted() };
}

function expectSidecar(built: readonly Manifest[], pod: PodSpec): void {
  const sidecar = containerOf(pod, "sallyport");
  expect(pod.initContainers?.[0]).toEqual(sidecar);
  expect(sidecar.restartPolicy).toBe("Always");
  expectProbes(sidecar);
  expectHardened(pod);
  expectNoServiceAccountToken(pod);
  expectTimeToStop(pod, contentOf(only(built, "ConfigMap"))["config.yaml"] ?? "");
}

function sleeping(seconds: number): object {
  return { preStop: { sleep: { seconds } } };
}

async function sample(): Promise<Manifest[]> {
  return readManifests(await readFile(join(kubernetes, "sample/deployment.yaml"), "utf8"));
}

/** Builds a directory with the sample, a copy of the components, and these files on top. */
async function builtBeside(files: Readonly<Record<string, string>>): Promise<Manifest[]> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  for (const name of ["sidecar", "pod-monitor"]) {
    await cp(join(kubernetes, name), join(directory.path, name), { recursive: true });
  }
  for (const name of ["deployment.yaml", "service.yaml"]) {
    await cp(join(kubernetes, "sample", name), join(directory.path, name));
  }
  for (const [name, content] of Object.entries(files)) {
    const file = join(directory.path, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  }
  return readManifests(await kustomized(directory.path));
}

/** Returns the manifest of a workload with its own init container and volume. */
function workload(kind: string, name: string, labels: string): string {
  const container = (name: string): string => `
        - name: ${name}
          image: orders:1.0.0
          imagePullPolicy: IfNotPresent
          resources: { requests: { memory: 64Mi }, limits: { memory: 128Mi } }
          securityContext:
            runAsNonRoot: true
            runAsUser: 65532
            runAsGroup: 65532
            readOnlyRootFilesystem: true
            allowPrivilegeEscalation: false
            privileged: false
            capabilities: { drop: [ALL] }
            seccompProfile: { type: RuntimeDefault }`;
  return `
apiVersion: ${kind === "Job" ? "batch/v1" : "apps/v1"}
kind: ${kind}
metadata: { name: ${name}, labels: ${labels} }
spec:
  template:
    spec:
      initContainers:${container("first")}
      containers:${container("orders")}
      volumes:
        - { name: own, secret: { secretName: own, defaultMode: 0440 } }
`;
}
