/** Schemas of the objects around the pods: disruption budgets, scaling, accounts, monitoring, Ingress and certificates. */
import { z } from "zod";
import { metadata, selector } from "./object-meta.ts";

const endpoint = z.strictObject({ port: z.string(), path: z.string(), interval: z.string() });
const backend = z.strictObject({
  service: z.strictObject({ name: z.string(), port: z.strictObject({ name: z.string() }) }),
});
const reference = z.strictObject({ group: z.string(), kind: z.string(), name: z.string() });

export const CLUSTER_KINDS = [
  z.strictObject({
    apiVersion: z.literal("monitoring.coreos.com/v1"),
    kind: z.literal("PodMonitor"),
    metadata,
    spec: z.strictObject({ selector, podMetricsEndpoints: z.array(endpoint) }),
  }),
  z.strictObject({
    apiVersion: z.literal("monitoring.coreos.com/v1"),
    kind: z.literal("ServiceMonitor"),
    metadata,
    spec: z.strictObject({ selector, endpoints: z.array(endpoint) }),
  }),
  z.strictObject({
    apiVersion: z.literal("v1"),
    kind: z.literal("ServiceAccount"),
    metadata,
    automountServiceAccountToken: z.boolean(),
  }),
  z.strictObject({
    apiVersion: z.literal("policy/v1"),
    kind: z.literal("PodDisruptionBudget"),
    metadata,
    spec: z.strictObject({
      maxUnavailable: z.union([z.int(), z.string()]),
      unhealthyPodEvictionPolicy: z.enum(["AlwaysAllow", "IfHealthyBudget"]),
      selector,
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("autoscaling/v2"),
    kind: z.literal("HorizontalPodAutoscaler"),
    metadata,
    spec: z.strictObject({
      scaleTargetRef: z.strictObject({
        apiVersion: z.literal("apps/v1"),
        kind: z.literal("Deployment"),
        name: z.string(),
      }),
      minReplicas: z.int(),
      maxReplicas: z.int(),
      metrics: z.array(
        z.strictObject({
          type: z.literal("Resource"),
          resource: z.strictObject({
            name: z.literal("cpu"),
            target: z.strictObject({ type: z.literal("AverageValue"), averageValue: z.string() }),
          }),
        }),
      ),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("networking.k8s.io/v1"),
    kind: z.literal("Ingress"),
    metadata,
    spec: z.strictObject({
      ingressClassName: z.string().optional(),
      tls: z.array(
        z.strictObject({ hosts: z.array(z.string()), secretName: z.string().optional() }),
      ),
      rules: z.array(
        z.strictObject({
          host: z.string(),
          http: z.strictObject({
            paths: z.array(
              z.strictObject({ path: z.string(), pathType: z.enum(["Prefix", "Exact"]), backend }),
            ),
          }),
        }),
      ),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("gateway.networking.k8s.io/v1"),
    kind: z.literal("BackendTLSPolicy"),
    metadata,
    spec: z.strictObject({
      targetRefs: z.array(reference),
      validation: z.strictObject({
        hostname: z.string(),
        caCertificateRefs: z.array(reference),
      }),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("traefik.io/v1alpha1"),
    kind: z.literal("ServersTransport"),
    metadata,
    spec: z.strictObject({
      serverName: z.string(),
      rootCAs: z.array(z.strictObject({ secret: z.string() })),
    }),
  }),
] as const;
