/** The tests' application with the component in front of it, made as deploy/kubernetes/README.md tells people. */
import { cp } from "node:fs/promises";
import { basename, join } from "node:path";
import { DEPLOY } from "../deploy/documents.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { IMAGES } from "./cluster.ts";
import { kubectl } from "./kubectl.ts";
import { hardened } from "./manifests.ts";
import type { Space } from "./space.ts";

/** The label of the application's pods. */
export const APP = "app=orders";
const DEPLOYMENT = "deployment/orders";
const ROLLOUT = "--timeout=180s";

const PORT = 8080;
const HEALTHY = `fetch("http://127.0.0.1:${PORT}/").then(() => process.exit(0), () => process.exit(1))`;

interface Changes {
  readonly replicas?: number;
  /** Operations of a JSON patch, after those of the component. */
  readonly patch?: readonly object[];
  /** Further files of the tests, which the application's container and Sallyport find below /test. */
  readonly files?: readonly string[];
}

/** Applies it and waits until it is ready. Gives what kubectl warns of. */
export async function protect(space: Space, changes: Changes = {}): Promise<string> {
  const { replicas = 2, patch = [], files = [] } = changes;
  const resources = [application(replicas), service()];
  const warned = await applyWithSidecar(space, resources, {
    files: [join(import.meta.dirname, "application.ts"), ...files],
    patches:
      patch.length === 0 ? [] : [{ target: { kind: "Deployment" }, patch: JSON.stringify(patch) }],
  });
  await rolledOut(space);
  return warned;
}

interface Kustomized {
  /** They become the ConfigMap `test`. */
  readonly files?: readonly string[];
  readonly patches?: readonly object[];
}

/** Applies resources with the component, in a space. Gives what kubectl warns of. */
export async function applyWithSidecar(
  space: Space,
  resources: readonly object[],
  { files = [], patches = [] }: Kustomized = {},
): Promise<string> {
  await using directory = await temporaryDirectory();
  await cp(join(DEPLOY, "kubernetes/sidecar"), join(directory.path, "sidecar"), {
    recursive: true,
  });
  const list = { apiVersion: "v1", kind: "List", items: resources };
  await directory.write("resources.yaml", JSON.stringify(list));
  for (const file of files) await cp(file, join(directory.path, basename(file)));
  const kustomization = {
    apiVersion: "kustomize.config.k8s.io/v1beta1",
    kind: "Kustomization",
    namespace: space.name,
    resources: ["resources.yaml"],
    components: ["sidecar"],
    images: IMAGES,
    configMapGenerator: [{ name: "test", files: files.map((file) => basename(file)) }],
    patches,
  };
  await directory.write("kustomization.yaml", JSON.stringify(kustomization));
  return (await kubectl(["apply", "-k", directory.path])).stderr;
}

export async function restart(space: Space): Promise<void> {
  await space.kubectl(["rollout", "restart", DEPLOYMENT]);
  await rolledOut(space);
}

export async function scale(space: Space, replicas: number): Promise<void> {
  await space.kubectl(["scale", DEPLOYMENT, `--replicas=${replicas}`]);
  await rolledOut(space);
}

export async function rolledOut(space: Space): Promise<void> {
  await space.kubectl(["rollout", "status", DEPLOYMENT, ROLLOUT]);
}

function application(replicas: number): object {
  const labels = { app: "orders" };
  const container = {
    ...hardened("orders", "sallyport"),
    command: ["/nodejs/bin/node", "/test/application.ts"],
    readinessProbe: {
      exec: { command: ["/nodejs/bin/node", "--eval", HEALTHY] },
      periodSeconds: 2,
      timeoutSeconds: 5,
    },
    volumeMounts: [{ name: "test", mountPath: "/test", readOnly: true }],
  };
  const pod = { containers: [container], volumes: [{ name: "test", configMap: { name: "test" } }] };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "orders", labels: { ...labels, sallyport: "inject" } },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: pod },
    },
  };
}

function service(): object {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "orders", labels: { sallyport: "inject" } },
    spec: { selector: { app: "orders" }, ports: [{ port: 80, targetPort: PORT }] },
  };
}
