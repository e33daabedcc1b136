import { readFile } from "node:fs/promises";
import { calculateJwkThumbprint } from "jose";
import { createPublicKey } from "node:crypto";
import { ASKERS, withPorts } from "../../test/support/askers.ts";
import { startProxy } from "../machine/cores.ts";
import { accepting, freePort } from "../machine/ports.ts";
import { missingPrograms, needProgram } from "../machine/programs.ts";
import type { Setting } from "../setting/setting.ts";
import { type Algorithm, AUDIENCE, GROUP, ISSUER } from "../setting/tokens.ts";
import { MOST_AT_ONCE, type Peer, type Place, type Running } from "./peer.ts";
import { running } from "./running.ts";

/** The same number of tokens as Sallyport caches. */
const CACHED_TOKENS = 10_000;

/**
 * Envoy with one thread. With `checks`, it has the `jwt_authn` filter with its token cache, and a rule that requires the group.
 */
export function envoy(checks: Algorithm | undefined): Peer {
  return {
    title: checks === undefined ? "Envoy, no authentication" : "Envoy, jwt_authn, cached",
    checks,
    missing: () => missingPrograms("envoy"),
    async start(setting, place) {
      const port = await freePort();
      const configuration = await configure(setting, place, port, checks);
      // JSON is YAML, too.
      const file = await setting.write(`envoy-${port}.yaml`, JSON.stringify(configuration));
      const flags = ["--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id"];
      const child = startProxy(place.cores, needProgram("envoy"), ["-c", file, ...flags]);
      return running(child, accepting(port, child));
    },
  };
}

/** Starts Envoy with one thread, as deploy/proxies/envoy.yaml configures it to ask a Sallyport over gRPC, without authentication itself. */
export async function startAskingEnvoy(
  { directory, write }: Setting,
  { backend, cores }: Place,
  gate: number,
): Promise<Running> {
  const port = await freePort();
  const args = await ASKERS["Envoy over gRPC"]?.configure({
    directory: { path: directory, write },
    placed: (text) => withPorts(text, { port, backend, gate }),
  });
  const child = startProxy(cores, needProgram("envoy"), args ?? []);
  return running(child, accepting(port, child));
}

const EXTENSIONS = "type.googleapis.com/envoy.extensions";
const address = (port: number) => ({ socket_address: { address: "127.0.0.1", port_value: port } });

const NO_BREAKERS = {
  max_connections: MOST_AT_ONCE,
  max_pending_requests: MOST_AT_ONCE,
  max_requests: MOST_AT_ONCE,
};
const HTTP2_TO_BACKENDS = {
  "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
    "@type": `${EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions`,
    explicit_http_config: { http2_protocol_options: {} },
  },
};

async function configure(
  setting: Setting,
  { backend, tls, http2 }: Place,
  port: number,
  checks: Algorithm | undefined,
) {
  const { certFile, keyFile } = setting.certificate;
  const filters = [
    ...(checks === undefined ? [] : [await verification(setting, checks), groupRule()]),
    {
      name: "envoy.filters.http.router",
      typed_config: { "@type": `${EXTENSIONS}.filters.http.router.v3.Router` },
    },
  ];
  const manager = {
    "@type": `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "measured",
    codec_type: http2 === undefined ? "HTTP1" : "HTTP2",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "app", timeout: "0s" } }],
        },
      ],
    },
    http_filters: filters,
  };
  const transport = {
    name: "tls",
    typed_config: {
      "@type": `${EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext`,
      common_tls_context: {
        tls_params: { tls_minimum_protocol_version: "TLSv1_3" },
        tls_certificates: [
          { certificate_chain: { filename: certFile }, private_key: { filename: keyFile } },
        ],
        ...(http2 !== undefined && { alpn_protocols: ["h2"] }),
      },
    },
  };
  const listener = {
    name: "measured",
    address: address(port),
    filter_chains: [
      {
        filters: [{ name: "http", typed_config: manager }],
        ...(tls && { transport_socket: transport }),
      },
    ],
  };
  const endpoint = { endpoint: { address: address(backend) } };
  const app = {
    name: "app",
    type: "STATIC",
    connect_timeout: "5s",
    load_assignment: { cluster_name: "app", endpoints: [{ lb_endpoints: [endpoint] }] },
    ...(http2 !== undefined && { circuit_breakers: { thresholds: [NO_BREAKERS] } }),
    ...(http2 === "both" && { typed_extension_protocol_options: HTTP2_TO_BACKENDS }),
  };
  return { static_resources: { listeners: [listener], clusters: [app] } };
}

async function verification({ keys }: Setting, algorithm: Algorithm) {
  const key = createPublicKey(await readFile(keys[algorithm].publicFile));
  const kid = await calculateJwkThumbprint(key);
  const jwk = { ...key.export({ format: "jwk" }), kid, alg: algorithm };
  const provider = {
    issuer: ISSUER,
    audiences: [AUDIENCE],
    local_jwks: { inline_string: JSON.stringify({ keys: [jwk] }) },
    payload_in_metadata: "claims",
    // It allows 60 s by default; Sallyport allows none.
    clock_skew_seconds: 1,
    jwt_cache_config: { jwt_cache_size: CACHED_TOKENS },
  };
  return {
    name: "envoy.filters.http.jwt_authn",
    typed_config: {
      "@type": `${EXTENSIONS}.filters.http.jwt_authn.v3.JwtAuthentication`,
      providers: { bench: provider },
      rules: [{ match: { prefix: "/" }, requires: { provider_name: "bench" } }],
    },
  };
}

function groupRule() {
  const group = { list_match: { one_of: { string_match: { exact: GROUP } } } };
  const metadata = {
    filter: "envoy.filters.http.jwt_authn",
    path: [{ key: "claims" }, { key: "groups" }],
    value: group,
  };
  return {
    name: "envoy.filters.http.rbac",
    typed_config: {
      "@type": `${EXTENSIONS}.filters.http.rbac.v3.RBAC`,
      rules: {
        action: "ALLOW",
        policies: { group: { permissions: [{ any: true }], principals: [{ metadata }] } },
      },
    },
  };
}
