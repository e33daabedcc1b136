/** Schemas of the objects that route requests, and that let a proxy ask about them: the Gateway API, Envoy Gateway, Istio, Traefik. */
import { z } from "zod";
import { metadata, names, selector } from "./object-meta.ts";

const service = z.strictObject({
  name: z.string(),
  namespace: z.string().optional(),
  port: z.int(),
});
const granted = z.strictObject({ group: z.string(), kind: z.string(), namespace: z.string() });
const reference = z.strictObject({ group: z.string(), kind: z.string(), name: z.string() });
const uri = z.union([
  z.strictObject({ exact: z.string() }),
  z.strictObject({ prefix: z.string() }),
]);

export const ROUTE_KINDS = [
  z.strictObject({
    apiVersion: z.literal("gateway.networking.k8s.io/v1"),
    kind: z.literal("HTTPRoute"),
    metadata,
    spec: z.strictObject({
      parentRefs: z.array(z.strictObject({ name: z.string() })),
      hostnames: z.array(z.string()),
      rules: z.array(
        z.strictObject({
          matches: z
            .array(
              z.strictObject({
                path: z.strictObject({ type: z.enum(["Exact", "PathPrefix"]), value: z.string() }),
              }),
            )
            .optional(),
          filters: z
            .array(
              z.strictObject({
                type: z.literal("ExternalAuth"),
                externalAuth: z.strictObject({
                  protocol: z.literal("GRPC"),
                  backendRef: service,
                  // The API server asks for it with GRPC, even if it is empty.
                  grpc: z.strictObject({}),
                }),
              }),
            )
            .optional(),
          backendRefs: z.array(service),
        }),
      ),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("gateway.networking.k8s.io/v1beta1"),
    kind: z.literal("ReferenceGrant"),
    metadata,
    spec: z.strictObject({ from: z.array(granted), to: z.array(reference) }),
  }),
  z.strictObject({
    apiVersion: z.literal("gateway.envoyproxy.io/v1alpha1"),
    kind: z.literal("SecurityPolicy"),
    metadata,
    spec: z.strictObject({
      targetRefs: z.array(reference),
      extAuth: z.strictObject({
        failOpen: z.literal(false),
        timeout: z.string(),
        grpc: z.strictObject({
          backendRefs: z.array(service),
          backendSettings: z.strictObject({
            retry: z.strictObject({
              numRetries: z.int(),
              retryOn: z.strictObject({ triggers: z.array(z.string()) }),
            }),
          }),
        }),
      }),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("security.istio.io/v1"),
    kind: z.literal("AuthorizationPolicy"),
    metadata,
    spec: z.strictObject({
      selector,
      action: z.literal("CUSTOM"),
      provider: z.strictObject({ name: z.string() }),
      rules: z.array(
        z.strictObject({
          to: z.array(
            z.strictObject({ operation: z.strictObject({ notPaths: z.array(z.string()) }) }),
          ),
        }),
      ),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("networking.istio.io/v1"),
    kind: z.literal("VirtualService"),
    metadata,
    spec: z.strictObject({
      hosts: z.array(z.string()),
      gateways: z.array(z.string()),
      http: z.array(
        z.strictObject({
          match: z.array(z.strictObject({ uri })).optional(),
          route: z.array(
            z.strictObject({
              destination: z.strictObject({
                host: z.string(),
                port: z.strictObject({ number: z.int() }),
              }),
            }),
          ),
        }),
      ),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("networking.istio.io/v1"),
    kind: z.literal("DestinationRule"),
    metadata,
    spec: z.strictObject({
      host: z.string(),
      trafficPolicy: z.strictObject({
        tls: z.strictObject({
          mode: z.literal("SIMPLE"),
          credentialName: z.string(),
          sni: z.string(),
          subjectAltNames: z.array(z.string()),
        }),
      }),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("traefik.io/v1alpha1"),
    kind: z.literal("IngressRoute"),
    metadata,
    spec: z.strictObject({
      entryPoints: z.array(z.string()),
      routes: z.array(
        z.strictObject({
          kind: z.literal("Rule"),
          match: z.string(),
          middlewares: z.array(z.strictObject({ name: z.string() })).optional(),
          services: z.array(
            z.strictObject({
              name: z.string(),
              namespace: z.string().optional(),
              port: z.union([z.int(), z.string()]),
              scheme: z.enum(["http", "https"]).optional(),
              serversTransport: z.string().optional(),
            }),
          ),
        }),
      ),
      tls: z.strictObject({ secretName: z.string() }),
    }),
  }),
  z.strictObject({
    apiVersion: z.literal("traefik.io/v1alpha1"),
    kind: z.literal("Middleware"),
    metadata,
    spec: z.union([
      z.strictObject({ headers: z.strictObject({ customRequestHeaders: names }) }),
      z.strictObject({
        forwardAuth: z.strictObject({
          address: z.string(),
          trustForwardHeader: z.literal(false),
          preserveLocationHeader: z.literal(true),
          authResponseHeaders: z.array(z.string()),
          tls: z.strictObject({ caSecret: z.string() }),
        }),
      }),
    ]),
  }),
] as const;
