import { parseAllDocuments } from "yaml";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import {
  type Draft,
  freeName,
  listenAddress,
  type Migrated,
  MigrationError,
  Report,
  targetOf,
} from "./migration.ts";
import { globPath } from "./path-patterns.ts";
import { addFlags, reportRest, Settings, wordsIn } from "./source-settings.ts";

const CLUSTER_ISSUER = "https://kubernetes.default.svc.cluster.local";

const LOST: readonly (readonly [RegExp, string])[] = [
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
 * Translates the arguments of kube-rbac-proxy.
 *
 * @param sources `file`: the text of a manifest (YAML) with a container that runs kube-rbac-proxy; `flags`: a command
 * line.
 * @throws MigrationError if the manifest has no such container, or no `--upstream` is given.
 */
export function fromKubeRbacProxy(sources: {
  readonly file?: string | undefined;
  readonly flags?: string | undefined;
}): Migrated {
  const settings = new Settings();
  const args = [
    ...(sources.file === undefined ? [] : argsIn(sources.file)),
    ...wordsIn(sources.flags ?? ""),
  ];
  addFlags(settings, args, (name) => SWITCHES.has(name));
  const report = new Report();
  const draft: Draft = { server: {}, tokens: {}, routes: [], upstreams: {} };
  listener(settings, draft, report);
  issuers(settings, draft, report);
  upstream(settings, draft, report);
  routes(settings, draft, report);
  identity(settings, draft, report);
  report.lost(
    "SubjectAccessReview",
    "RBAC does not apply: routes without require accept every token with the audience. To keep RBAC, set authorization with kind subjectAccessReview",
  );
  reportRest(settings, LOST, report);
  return { configuration: draft, report: report.lines };
}

/** Returns the arguments of the first container that runs kube-rbac-proxy, at any depth of the manifest. */
function argsIn(text: string): string[] {
  const documents = parseAllDocuments(text);
  if (documents.some(({ errors }) => errors.length > 0))
    throw new MigrationError("the manifest is not YAML");
  const found = documents.flatMap((document) =>
    containersIn(document.toJS({ maxAliasCount: 100 })),
  );
  const [container] = found;
  if (container === undefined)
    throw new MigrationError("the manifest has no container of kube-rbac-proxy");
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

function listener(settings: Settings, { server }: Draft, report: Report): void {
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
    report.changed("insecure-listen-address", "server.tls is off: tokens pass unencrypted here");
    return;
  }
  server.tls =
    certFile === undefined || keyFile === undefined ? { selfSigned: true } : { certFile, keyFile };
  report.carried(
    "secure-listen-address, tls-cert-file, tls-private-key-file",
    "server.listen, server.tls",
  );
  if (certFile === undefined)
    report.changed(
      "tls-cert-file",
      "a certificate is generated at start, as before: for tests only",
    );
  if (least !== undefined) {
    server.tls["minVersion"] = least === "VersionTLS13" ? "TLSv1.3" : "TLSv1.2";
    report.carried("tls-min-version", "server.tls.minVersion");
  }
  if (authority !== undefined) {
    server.tls["clientCertificates"] = { mode: "optional", caFile: authority };
    report.changed(
      "client-ca-file",
      "a client certificate does not replace the token: requests still need one",
    );
  }
}

function issuers(settings: Settings, { tokens }: Draft, report: Report): void {
  const audiences = settings.takeAll("auth_token_audiences").flatMap((each) => each.split(","));
  const issuer = settings.take("oidc_issuer");
  const client = settings.take("oidc_clientid", "oidc_client_id");
  const algorithms = settings.takeAll("oidc_sign_alg");
  const groups = settings.take("oidc_groups_claim");
  const subject = settings.take("oidc_username_claim");
  const authority = settings.take("oidc_ca_file");
  const trusted: Record<string, unknown>[] = [];
  if (issuer !== undefined) {
    const claims = {
      ...(groups === undefined ? {} : { groups }),
      ...(subject === undefined ? {} : { subject }),
    };
    trusted.push({
      ...{ issuer, audience: client ?? "", discovery: true },
      algorithms: algorithms.length > 0 ? algorithms : ["RS256"],
      ...(Object.keys(claims).length > 0 ? { claims } : {}),
      ...(authority === undefined ? {} : { jwks: { caFile: authority } }),
    });
    report.carried("oidc-issuer, oidc-clientID", "tokens.trusted[0]");
  }
  const [audience = "", ...more] = audiences;
  if (audience !== "" || issuer === undefined) {
    trusted.push({
      issuer: CLUSTER_ISSUER,
      audience: more.length > 0 ? audiences : audience || CLUSTER_ISSUER,
      jwks: { file: "cluster-keys.json" },
      algorithms: ["RS256"],
    });
    report.changed(
      "TokenReview",
      "tokens.trusted verifies signature and claims. Compare the issuer with kubectl get --raw /.well-known/openid-configuration, and put /openid/v1/jwks into cluster-keys.json",
    );
    report.carried("auth-token-audiences", "tokens.trusted[].audience");
  }
  tokens.trusted = trusted;
}

function upstream(settings: Settings, { upstreams }: Draft, report: Report): void {
  const written = settings.take("upstream");
  const found = written === undefined ? undefined : targetOf(written);
  if (found === undefined) throw new MigrationError("there is no --upstream with an http URL");
  const h2c = settings.takeFlag("upstream_force_h2c");
  const tls = Object.entries({
    caFile: settings.take("upstream_ca_file"),
    certFile: settings.take("upstream_client_cert_file"),
    keyFile: settings.take("upstream_client_key_file"),
  }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  upstreams["app"] = {
    targets: [found.target],
    ...(tls.length > 0 ? { tls: Object.fromEntries(tls) } : {}),
    ...(h2c ? { protocol: "h2c" } : {}),
  };
  report.carried("upstream", "upstreams.app");
  if (h2c) report.carried("upstream_force_h2c", "upstreams.app.protocol");
  if (!["", "/"].includes(found.path))
    report.changed("upstream", `set rewrite.addPrefix of the routes to its path ${found.path}`);
}

function routes(settings: Settings, draft: Draft, report: Report): void {
  const list = (name: string): string[] =>
    settings.takeAll(name).flatMap((each) => each.split(","));
  const add = (pattern: string, flag: string, more: { auth?: "none" }): void => {
    const path = globPath(pattern);
    const setting = `${flag} ${pattern}`;
    if (path === undefined) {
      report.lost(
        setting,
        "a path has no wildcards: write a route with a prefix, which covers all levels below",
      );
      return;
    }
    const name = freeName(
      path.exact ?? "",
      draft.routes.map((route) => route.name),
    );
    draft.routes.push({ name, ...path, ...more, upstream: "app" });
    report.carried(setting, `routes: ${name}`);
  };
  for (const pattern of list("ignore_paths")) add(pattern, "ignore-paths", { auth: "none" });
  const allowed = list("allow_paths");
  for (const pattern of allowed) add(pattern, "allow-paths", {});
  if (allowed.length === 0) draft.routes.push({ name: "everything", upstream: "app" });
}

function identity(settings: Settings, draft: Draft, report: Report): void {
  const user = settings.take("auth_header_user_field_name");
  const groups = settings.take("auth_header_groups_field_name");
  settings.take("auth_header_groups_field_separator");
  if (!settings.takeFlag("auth_header_fields_enabled")) return;
  const named = user !== undefined || groups !== undefined;
  draft.identity = {
    headers: named
      ? { subject: user ?? "X-Remote-User", groups: groups ?? "X-Remote-Groups" }
      : "kube-rbac-proxy",
  };
  report.changed(
    "auth-header-fields-enabled",
    "identity.headers; groups are separated by commas, not by |",
  );
}
