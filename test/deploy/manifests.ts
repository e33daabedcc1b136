/**
 * Schemas for the part of the Kubernetes API that files in deploy/ use. All are strict: a field that is misspelt or
 * in the wrong place is an error, as in a cluster with strict validation.
 */
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { CLUSTER_KINDS } from "./cluster-kinds.ts";
import { ROUTE_KINDS } from "./route-kinds.ts";
import { metadata, names, selector } from "./object-meta.ts";

const port = z.union([z.int(), z.string()]);

const probe = z.strictObject({
  httpGet: z.strictObject({ path: z.string(), port }),
  initialDelaySeconds: z.int().optional(),
  periodSeconds: z.int().optional(),
  timeoutSeconds: z.int().optional(),
  failureThreshold: z.int().optional(),
  terminationGracePeriodSeconds: z.int().optional(),
});

const hook = z.union([
  z.strictObject({ exec: z.strictObject({ command: z.array(z.string()) }) }),
  z.strictObject({ sleep: z.strictObject({ seconds: z.int() }) }),
]);

const amounts = z.strictObject({ cpu: z.string().optional(), memory: z.string().optional() });

const container = z.strictObject({
  name: z.string(),
  image: z.string(),
  imagePullPolicy: z.enum(["Always", "IfNotPresent", "Never"]),
  command: z.array(z.string()).optional(),
  args: z.array(z.string()).optional(),
  env: z.array(z.strictObject({ name: z.string(), value: z.string() })).optional(),
  restartPolicy: z.literal("Always").optional(),
  ports: z
    .array(z.strictObject({ name: z.string(), containerPort: z.int(), protocol: z.literal("TCP") }))
    .optional(),
  startupProbe: probe.optional(),
  livenessProbe: probe.optional(),
  readinessProbe: probe.optional(),
  lifecycle: z.strictObject({ preStop: hook }).optional(),
  resources: z.strictObject({ requests: amounts, limits: amounts }),
  securityContext: z.strictObject({
    runAsNonRoot: z.boolean(),
    runAsUser: z.int(),
    runAsGroup: z.int(),
    readOnlyRootFilesystem: z.boolean(),
    allowPrivilegeEscalation: z.boolean(),
    privileged: z.boolean(),
    capabilities: z.strictObject({ drop: z.array(z.string()) }),
    seccompProfile: z.strictObject({ type: z.string() }),
  }),
  volumeMounts: z
    .array(
      z.strictObject({ name: z.string(), mountPath: z.string(), readOnly: z.boolean().optional() }),
    )
    .optional(),
});

const items = z.array(z.strictObject({ key: z.string(), path: z.string() }));
const source = z.strictObject({ name: z.string(), items });
const volume = z.union([
  z.strictObject({
    name: z.string(),
    projected: z.strictObject({
      defaultMode: z.int(),
      sources: z.array(
        z.union([z.strictObject({ configMap: source }), z.strictObject({ secret: source })]),
      ),
    }),
  }),
  z.strictObject({
    name: z.string(),
    secret: z.strictObject({ secretName: z.string(), defaultMode: z.int() }),
  }),
  z.strictObject({
    name: z.string(),
    emptyDir: z.strictObject({ medium: z.literal("Memory"), sizeLimit: z.string() }),
  }),
]);

const topologySpreadConstraint = z.strictObject({
  maxSkew: z.int(),
  topologyKey: z.string(),
  whenUnsatisfiable: z.enum(["DoNotSchedule", "ScheduleAnyway"]),
  labelSelector: selector,
  matchLabelKeys: z.array(z.string()),
});

const podSpec = z.strictObject({
  restartPolicy: z.enum(["Always", "OnFailure", "Never"]).optional(),
  terminationGracePeriodSeconds: z.int().optional(),
  automountServiceAccountToken: z.boolean().optional(),
  enableServiceLinks: z.boolean().optional(),
  imagePullSecrets: z.array(z.strictObject({ name: z.string() })).optional(),
  serviceAccountName: z.string().optional(),
  priorityClassName: z.string().optional(),
  topologySpreadConstraints: z.array(topologySpreadConstraint).optional(),
  securityContext: z.strictObject({ fsGroup: z.int() }).optional(),
  initContainers: z.array(container).optional(),
  containers: z.array(container),
  volumes: z.array(volume).optional(),
});

const workload = {
  metadata,
  spec: z.strictObject({
    replicas: z.int().optional(),
    strategy: z.looseObject({}).optional(),
    selector: selector.optional(),
    template: z.strictObject({
      metadata: metadata.omit({ name: true }).optional(),
      spec: podSpec,
    }),
  }),
};

const networkPolicyPeer = z.union([
  z.strictObject({ namespaceSelector: selector }),
  z.strictObject({ podSelector: selector }),
]);

const manifest = z.discriminatedUnion("kind", [
  z.strictObject({ apiVersion: z.literal("apps/v1"), kind: z.literal("Deployment"), ...workload }),
  z.strictObject({ apiVersion: z.literal("apps/v1"), kind: z.literal("StatefulSet"), ...workload }),
  z.strictObject({ apiVersion: z.literal("apps/v1"), kind: z.literal("DaemonSet"), ...workload }),
  z.strictObject({ apiVersion: z.literal("batch/v1"), kind: z.literal("Job"), ...workload }),
  z.strictObject({
    apiVersion: z.literal("v1"),
    kind: z.literal("Pod"),
    metadata,
    spec: podSpec,
  }),
  z.strictObject({
    apiVersion: z.literal("v1"),
    kind: z.literal("Service"),
    metadata,
    spec: z.strictObject({
      type: z.enum(["ClusterIP", "NodePort", "LoadBalancer"]).optional(),
      externalTrafficPolicy: z.enum(["Local", "Cluster"]).optional(),
      selector: names,
      ports: z.array(
        z.strictObject({
          name: z.string(),
          port: z.int(),
          protocol: z.literal("TCP"),
          targetPort: port,
        }),
      ),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("v1"),
    kind: z.literal("ConfigMap"),
    metadata,
    data: names,
  }),
  z.strictObject({
    apiVersion: z.literal("v1"),
    kind: z.literal("Secret"),
    metadata,
    type: z.string().optional(),
    data: names.optional(),
    stringData: names.optional(),
  }),
  z.strictObject({
    apiVersion: z.literal("networking.k8s.io/v1"),
    kind: z.literal("NetworkPolicy"),
    metadata,
    spec: z.strictObject({
      podSelector: selector,
      policyTypes: z.array(z.literal("Ingress")),
      ingress: z.array(
        z.strictObject({
          from: z.array(networkPolicyPeer).optional(),
          ports: z.array(z.strictObject({ protocol: z.literal("TCP"), port: z.int() })),
        }),
      ),
    }),
  }),
  ...CLUSTER_KINDS,
  ...ROUTE_KINDS,
]);

export type Manifest = z.infer<typeof manifest>;
export type PodSpec = z.infer<typeof podSpec>;
export type Container = z.infer<typeof container>;
type Of<K extends Manifest["kind"]> = Extract<Manifest, { kind: K }>;

/** Parses every document as YAML 1.1, in which 0440 is octal, the way Kubernetes does. Throws on anything unknown. */
export function readManifests(text: string): Manifest[] {
  return parseAllDocuments(text, { version: "1.1" }).flatMap((document) => {
    if (document.errors.length > 0) throw new AggregateError(document.errors);
    const value: unknown = document.toJS();
    return value === null ? [] : [manifest.parse(value)];
  });
}

/** Returns the only object of a kind (and with a name, if one is given). */
export function only<K extends Manifest["kind"]>(
  manifests: readonly Manifest[],
  kind: K,
  name?: string,
): Of<K> {
  const found = manifests.filter(
    (each): each is Of<K> =>
      each.kind === kind && (name === undefined || each.metadata.name === name),
  );
  const [one] = found;
  if (one === undefined || found.length > 1) {
    throw new Error(`${found.length} objects of the kind ${kind}, instead of one`);
  }
  return one;
}

/** Returns a container of a pod, native sidecar or not. */
export function containerOf(pod: PodSpec, name: string): Container {
  const all = [...(pod.initContainers ?? []), ...pod.containers];
  const found = all.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no container ${name}`);
  return found;
}

/** Returns the content of a ConfigMap or Secret as text. */
export function contentOf(object: Of<"ConfigMap"> | Of<"Secret">): Record<string, string> {
  if (object.kind === "ConfigMap") return object.data;
  const decoded = Object.entries(object.data ?? {}).map(
    ([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")] as const,
  );
  return { ...Object.fromEntries(decoded), ...object.stringData };
}
