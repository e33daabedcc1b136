import { parseAllDocuments } from "yaml";
import { isJsonObject } from "../../src/lib/text/strict-json.ts";
import { UsageError } from "../../src/cli/command.ts";
import {
  listenAddress,
  Migration,
  type Reasons,
  Settings,
  type Sources,
  targetOf,
  unlessEmpty,
  wordsIn,
} from "./migration.ts";

const CLUSTER_ISSUER = "https://kubernetes.default.svc.cluster.local";

const LOST: Reasons = [
  [
    /^config_file$/,
    "RBAC does not apply: routes check the token's claims. To keep RBAC, set authorization with kind subjectAccessReview",
  ],
  [/^(?:kubeconfig|kube_api)/, "the API server is not queried: its public keys verify tokens"],
  [/^http2/, "server.http2: true allows HTTP/2; server.limits.streams limits its streams"],
  [/^tls_cipher_suites/, "the suites are fixed"],
  [
    /^(?:v|logtostderr|log_|alsologtostderr|stderrthreshold|vmodule|add_dir_header|skip_)/,
    "see log.level",
  ],
  [/^tls_reload_interval/, "certificates are reloaded when they change"],
  [/^proxy_endpoints_port/, "use /livez and /readyz on the admin listener"],
  [/^oidc_(?:username|groups)_prefix/, "names are used as they are in the token"],
];

const SWITCHES = new Set([
  "auth_header_fields_enabled",
  "upstream_force_h2c",
  "http2_disable",
  "logtostderr",
]);

/**
 * Translates the arguments of kube-rbac-proxy. The file is a manifest (YAML) with a container that runs it.
 *
 * @throws UsageError if the manifest has no such container, or no `--upstream` is given.
 */
export function fromKubeRbacProxy({ file, flags }: Sources): Migration {
  const settings = new Settings();
  const args = [...(file === undefined ? [] : argsIn(file)), ...wordsIn(flags)];
  settings.addFlags(args, (name) => SWITCHES.has(name));
  const to = new Migration();
  for (const translate of [listener, issuers, upstream, routes, identity]) translate(settings, to);
  to.lost(
    "SubjectAccessReview",
    "RBAC does not apply: routes without require accept every token with the audience. To keep RBAC, set authorization with kind subjectAccessReview",
  );
  settings.reportRest(LOST, to);
  return to;
}

/** Returns the arguments of the first container that runs kube-rbac-proxy, at any depth of the manifest. */
function argsIn(text: string): string[] {
  const documents = parseAllDocuments(text);
  if (documents.some(({ errors }) => errors.length > 0))
    throw new UsageError("the manifest is not YAML");
  const found = documents.map((document): unknown => document.toJS({ maxAliasCount: 100 }));
  const [container] = containersIn(found);
  if (container === undefined)
    throw new UsageError("the manifest has no container of kube-rbac-proxy");
  const lists = [container["command"], container["args"]];
  return lists.flatMap((list) => (Array.isArray(list) ? list.map(String) : []));
}

function containersIn(value: unknown): Record<string, unknown>[] {
  if (Array.isArray(value)) return value.flatMap(containersIn);
  if (!isJsonObject(value)) return [];
  const { name, image } = value;
  const isOne = [name, image].some((each) => String(each).includes("kube-rbac-proxy"));
  if (isOne && image !== undefined) return [value];
  return Object.values(value).flatMap(containersIn);
}

function listener(settings: Settings, to: Migration): void {
  const { server } = to.configuration;
  const secure = settings.take("secure_listen_address");
  const insecure = settings.take("insecure_listen_address");
  const certFile = settings.take("tls_cert_file");
  const keyFile = settings.take("tls_private_key_file");
  const least = settings.take("tls_min_version");
  const authority = settings.take("client_ca_file");
  const address = secure ?? insecure;
  if (address !== undefined) server.listen = listenAddress(address);
  if (secure === undefined && insecure !== undefined) {
    server.tls = "off";
    to.changed("insecure-listen-address", "server.tls is off: tokens pass unencrypted here");
    return;
  }
  server.tls =
    certFile === undefined || keyFile === undefined ? { selfSigned: true } : { certFile, keyFile };
  to.carried(
    "secure-listen-address, tls-cert-file, tls-private-key-file",
    "server.listen, server.tls",
  );
  if (certFile === undefined)
    to.changed("tls-cert-file", "a certificate is generated at start, as before: for tests only");
  if (least !== undefined) {
    server.tls["minVersion"] = least === "VersionTLS13" ? "TLSv1.3" : "TLSv1.2";
    to.carried("tls-min-version", "server.tls.minVersion");
  }
  if (authority !== undefined) {
    server.tls["clientCertificates"] = { mode: "optional", caFile: authority };
    to.changed(
      "client-ca-file",
      "a client certificate does not replace the token, except on routes with auth: certificate",
    );
  }
}

function issuers(settings: Settings, to: Migration): void {
  const audiences = settings.takeList("auth_token_audiences");
  const issuer = settings.take("oidc_issuer");
  const audience = settings.take("oidc_clientid", "oidc_client_id") ?? "";
  const algorithms = settings.takeAll("oidc_sign_alg");
  const groups = settings.take("oidc_groups_claim");
  const subject = settings.take("oidc_username_claim");
  const caFile = settings.take("oidc_ca_file");
  const trusted: object[] = [];
  if (issuer !== undefined) {
    trusted.push({
      issuer,
      audience,
      discovery: true,
      algorithms: algorithms.length > 0 ? algorithms : ["RS256"],
      claims: unlessEmpty({ groups, subject }),
      jwks: unlessEmpty({ caFile }),
    });
    to.carried("oidc-issuer, oidc-clientID", "tokens.trusted[0]");
  }
  const [first = ""] = audiences;
  if (first !== "" || issuer === undefined) {
    trusted.push({
      issuer: CLUSTER_ISSUER,
      audience: audiences.length > 1 ? audiences : first || CLUSTER_ISSUER,
      jwks: { file: "cluster-keys.json" },
      algorithms: ["RS256"],
    });
    to.changed(
      "TokenReview",
      "tokens.trusted verifies signature and claims. Compare the issuer with kubectl get --raw /.well-known/openid-configuration, and put /openid/v1/jwks into cluster-keys.json",
    );
    to.carried("auth-token-audiences", "tokens.trusted[].audience");
  }
  to.configuration.tokens.trusted = trusted;
}

function upstream(settings: Settings, to: Migration): void {
  const found = targetOf(settings.take("upstream") ?? "");
  if (found === undefined) throw new UsageError("there is no --upstream with an http URL");
  const h2c = settings.takeFlag("upstream_force_h2c");
  const tls = unlessEmpty({
    caFile: settings.take("upstream_ca_file"),
    certFile: settings.take("upstream_client_cert_file"),
    keyFile: settings.take("upstream_client_key_file"),
  });
  to.addUpstream("app", { targets: [found.target], tls, protocol: h2c ? "h2c" : undefined });
  to.carried("upstream", "upstreams.app");
  if (h2c) to.carried("upstream_force_h2c", "upstreams.app.protocol");
  if (!["", "/"].includes(found.path))
    to.changed("upstream", `set rewrite.addPrefix of the routes to its path ${found.path}`);
}

function routes(settings: Settings, to: Migration): void {
  const { routes: all } = to.configuration;
  const add = (exact: string, flag: string, auth?: "none"): void => {
    const setting = `${flag} ${exact}`;
    // A pattern of Go's path.Match without wildcards is a path.
    if (!/^\/[^*?[\\]*$/.test(exact)) {
      to.lost(
        setting,
        "a path has no wildcards: write a route with a prefix, which covers all levels below",
      );
      return;
    }
    const name = to.routeName(exact);
    all.push({ name, exact, auth, upstream: "app" });
    to.carried(setting, `routes: ${name}`);
  };
  for (const pattern of settings.takeList("ignore_paths")) add(pattern, "ignore-paths", "none");
  const allowed = settings.takeList("allow_paths");
  for (const pattern of allowed) add(pattern, "allow-paths");
  if (allowed.length === 0) all.push({ name: "everything", upstream: "app" });
}

function identity(settings: Settings, to: Migration): void {
  const user = settings.take("auth_header_user_field_name");
  const groups = settings.take("auth_header_groups_field_name");
  settings.take("auth_header_groups_field_separator");
  if (!settings.takeFlag("auth_header_fields_enabled")) return;
  const named = user !== undefined || groups !== undefined;
  to.configuration.identity = {
    headers: named
      ? { subject: user ?? "X-Remote-User", groups: groups ?? "X-Remote-Groups" }
      : "kube-rbac-proxy",
  };
  to.changed(
    "auth-header-fields-enabled",
    "identity.headers; groups are separated by commas, not by |",
  );
}
