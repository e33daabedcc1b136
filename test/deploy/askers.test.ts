/**
 * The examples in deploy/kubernetes/askers ask the shared service, verify its certificate, let nobody pass without it, and leave
 * out of the question only what it answers itself.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { DEPLOY } from "./documents.ts";
import { type Manifest, only, readManifests } from "./manifests.ts";

const textOf = (file: string): string => readFileSync(join(DEPLOY, "kubernetes", file), "utf8");
const read = (file: string): Manifest[] => readManifests(textOf(file));

const { namespace } = parse(textOf("service/kustomization.yaml")) as { namespace: string };
const { metadata, spec } = only(read("service/service.yaml"), "Service");
const port = (name: string): number => spec.ports.find((each) => each.name === name)?.port ?? 0;
const service = { name: metadata.name, namespace, port: port("https") };
/** The name in its certificate. */
const HOST = `${metadata.name}.${namespace}.svc`;
const CA = "sallyport-ca";
const IDENTITY = ["X-Auth-Subject", "X-Auth-Groups", "X-Auth-Issuer"];
/** What clients ask of Sallyport itself. `/decide` is not among it. */
const EXACT = ["/_sallyport/logout", "/_sallyport/session", "/api/authenticate", "/api/logout"];
const SIGN_IN = "/_sallyport/login";

describe.each(["envoy-gateway", "gateway-api"])("%s", (name) => {
  const made = read(`askers/${name}.yaml`);
  const routes = made.flatMap((each) => (each.kind === "HTTPRoute" ? [each] : []));
  const rules = routes.flatMap((route) => route.spec.rules);

  test("only the paths of the sign-in reach Sallyport", () => {
    const open = rules.filter(({ backendRefs }) => backendRefs[0]?.name === service.name);
    expect(open.map(({ backendRefs }) => backendRefs)).toEqual([[service]]);
    const matches = (open[0]?.matches ?? []).map(({ path }) => path);
    const exact = matches.filter(({ type }) => type === "Exact");
    expect(exact.map(({ value }) => value).toSorted()).toEqual(EXACT);
    const prefixes = matches.filter(({ type }) => type === "PathPrefix");
    expect(prefixes.map(({ value }) => value)).toEqual([SIGN_IN]);
  });

  test("Sallyport's certificate is verified", () => {
    const policy = only(made, "BackendTLSPolicy");
    expect(policy.metadata.namespace).toBe(namespace);
    expect(policy.spec.targetRefs).toEqual([{ group: "", kind: "Service", name: service.name }]);
    expect(policy.spec.validation).toEqual({
      hostname: HOST,
      caCertificateRefs: [{ group: "", kind: "ConfigMap", name: CA }],
    });
  });

  test("whatever names the Service of the other namespace may do so", () => {
    const grant = only(made, "ReferenceGrant");
    expect(grant.metadata.namespace).toBe(namespace);
    expect(grant.spec.to).toEqual([{ group: "", kind: "Service", name: service.name }]);
    const kinds = new Set(grant.spec.from.map(({ kind }) => kind));
    const naming = made.filter(({ kind }) => kind === "SecurityPolicy" || kind === "HTTPRoute");
    expect(kinds).toEqual(new Set(naming.map(({ kind }) => kind)));
  });
});

test("Envoy Gateway asks over gRPC about the route of the application", () => {
  const made = read("askers/envoy-gateway.yaml");
  const { targetRefs, extAuth } = only(made, "SecurityPolicy").spec;
  const route = only(made, "HTTPRoute", targetRefs[0]?.name);
  const asked = route.spec.rules.flatMap(({ backendRefs }) => backendRefs);
  expect(asked.map(({ name }) => name)).toEqual(["orders"]);
  expect(extAuth).toMatchObject({ failOpen: false, grpc: { backendRefs: [service] } });
});

test("the filter of the Gateway API is in every rule but that of the sign-in", () => {
  const { rules } = only(read("askers/gateway-api.yaml"), "HTTPRoute").spec;
  for (const { filters, backendRefs } of rules) {
    const auth = { protocol: "GRPC", backendRef: service, grpc: {} };
    const expected = [{ type: "ExternalAuth", externalAuth: auth }];
    expect(filters).toEqual(backendRefs[0]?.name === service.name ? undefined : expected);
  }
});

test("Istio asks about every host and every path that it does not send to Sallyport", () => {
  const made = read("askers/istio.yaml");
  const policy = only(made, "AuthorizationPolicy").spec;
  const [first, ...others] = only(made, "VirtualService").spec.http;
  const skipped = (first?.match ?? []).map(({ uri }) =>
    "exact" in uri ? uri.exact : `${uri.prefix}*`,
  );
  const asked = policy.rules.flatMap(({ to }) => to.map(({ operation }) => operation));
  expect(asked).toEqual([{ notPaths: skipped }]);
  expect(skipped.toSorted()).toEqual([...EXACT, SIGN_IN, `${SIGN_IN}/*`].toSorted());
  expect(others.map(({ match }) => match)).toEqual([undefined]);

  const { meshConfig } = parse(textOf("askers/istio-mesh.yaml")) as {
    meshConfig: { extensionProviders: readonly Readonly<Record<string, unknown>>[] };
  };
  const local = `${HOST}.cluster.local`;
  expect(meshConfig.extensionProviders).toMatchObject([
    {
      name: policy.provider.name,
      envoyExtAuthzGrpc: { service: local, port: port("grpc"), failOpen: false },
    },
  ]);
  const rule = only(made, "DestinationRule").spec;
  expect(rule.host).toBe(local);
  expect(rule.trafficPolicy.tls).toEqual({
    mode: "SIMPLE",
    credentialName: CA,
    sni: HOST,
    subjectAltNames: [HOST],
  });
  expect(first?.route).toEqual([{ destination: { host: local, port: { number: port("grpc") } } }]);
});

test("Traefik removes what clients may not say, asks, and removes the token", () => {
  const made = read("askers/traefik.yaml");
  const [application, signIn] = only(made, "IngressRoute").spec.routes;
  const middlewares = (application?.middlewares ?? []).map(
    ({ name }) => only(made, "Middleware", name).spec,
  );
  const removed = middlewares.map((each) =>
    "headers" in each ? Object.keys(each.headers.customRequestHeaders) : [],
  );
  const OF_CERTIFICATE = ["Subject", "Spiffe-Id", "Dns-Names"].map(
    (part) => `X-Auth-Client-${part}`,
  );
  const original = ["X-Original-Method", "X-Original-URI", "X-Original-URL"];
  const before = [...original, ...IDENTITY, ...OF_CERTIFICATE];
  expect(removed).toEqual([before, [], ["Authorization"]]);
  expect(middlewares[1]).toEqual({
    forwardAuth: {
      address: `https://${HOST}/_sallyport/decide`,
      trustForwardHeader: false,
      preserveLocationHeader: true,
      authResponseHeaders: IDENTITY,
      tls: { caSecret: CA },
    },
  });
  expect(signIn?.middlewares).toBeUndefined();
  const open = [...(signIn?.match ?? "").matchAll(/Path(Prefix)?\(`([^`]+)`\)/g)];
  expect(open.map(([, , path = ""]) => path).toSorted()).toEqual([...EXACT, SIGN_IN].toSorted());
  const transport = only(made, "ServersTransport");
  expect(transport.spec).toEqual({ serverName: HOST, rootCAs: [{ secret: CA }] });
  expect(signIn?.services).toEqual([
    {
      name: service.name,
      namespace,
      port: "https",
      scheme: "https",
      serversTransport: transport.metadata.name,
    },
  ]);
});

test("nginx asks about everything but the sign-in, and verifies the certificate", () => {
  const text = textOf("askers/nginx.conf");
  const open = [...text.matchAll(/location (= )?(\S+) +\{ proxy_pass https:\/\/sallyport; \}/g)];
  const paths = open.map(([, exact, path]) => `${exact ?? ""}${path}`);
  const expected = [...EXACT, SIGN_IN].map((path) => `= ${path}`);
  expect(paths.toSorted()).toEqual([...expected, `${SIGN_IN}/`].toSorted());
  expect(text).toContain(`server ${HOST}:${port("https")};`);
  expect(text).toMatch(new RegExp(`proxy_ssl_name +${HOST};`));
  expect(text).toMatch(/proxy_ssl_verify +on;/);
  expect(text).toContain("location /_sallyport/ { return 404; }");
  for (const name of IDENTITY)
    expect(text.match(new RegExp(`proxy_set_header ${name} `, "g"))).toHaveLength(2);
});
