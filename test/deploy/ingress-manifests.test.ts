/** The examples in deploy/kubernetes/ingress route to Sallyport over HTTPS, and verify its certificate. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DEPLOY } from "./documents.ts";
import { type Manifest, only, readManifests } from "./manifests.ts";

const read = (file: string): Manifest[] =>
  readManifests(readFileSync(join(DEPLOY, "kubernetes", file), "utf8"));

const { metadata, spec } = only(read("plain/service.yaml"), "Service");
const [port] = spec.ports;
const SECRET = "sallyport-ca";
/** The name in the certificate that readers of the guide create. */
const NAME = "localhost";

test("ingress-nginx", () => {
  const { metadata: ingress, spec: rules } = only(read("ingress/nginx.yaml"), "Ingress");
  const annotations = Object.entries(ingress.annotations ?? {}).map(
    ([name, value]) => [name.replace("nginx.ingress.kubernetes.io/", ""), value] as const,
  );
  expect(Object.fromEntries(annotations)).toMatchObject({
    "backend-protocol": "HTTPS",
    "proxy-ssl-verify": "on",
    "proxy-ssl-name": NAME,
    "proxy-ssl-secret": `default/${SECRET}`,
  });
  const backends = rules.rules.flatMap(({ http }) => http.paths.map(({ backend }) => backend));
  expect(backends).toEqual([{ service: { name: metadata.name, port: { name: port?.name } } }]);
});

test("Traefik", () => {
  const made = read("ingress/traefik.yaml");
  const { metadata: transport, spec: tls } = only(made, "ServersTransport");
  expect(tls).toEqual({ serverName: NAME, rootCAs: [{ secret: SECRET }] });
  const services = only(made, "IngressRoute").spec.routes.flatMap((route) => route.services);
  const way = { scheme: "https", serversTransport: transport.name };
  expect(services).toEqual([{ name: metadata.name, port: port?.name, ...way }]);
});

test("Gateway API", () => {
  const made = read("ingress/gateway.yaml");
  const { targetRefs, validation } = only(made, "BackendTLSPolicy").spec;
  expect(targetRefs).toEqual([{ group: "", kind: "Service", name: metadata.name }]);
  const authority = { group: "", kind: "ConfigMap", name: SECRET };
  expect(validation).toEqual({ hostname: NAME, caCertificateRefs: [authority] });
  const backends = only(made, "HTTPRoute").spec.rules.flatMap(({ backendRefs }) => backendRefs);
  expect(backends).toEqual([{ name: metadata.name, port: port?.port }]);
});
