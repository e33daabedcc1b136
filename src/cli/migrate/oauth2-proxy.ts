import { type Draft, listenAddress, type Migrated, Report } from "./migration.ts";
import { routes } from "./oauth2-routes.ts";
import { settingsOf, type Sources } from "./oauth2-settings.ts";
import { LOST } from "./oauth2-words.ts";
import { reportRest, type Settings } from "./source-settings.ts";

/** Translates the settings of oauth2-proxy. @throws MigrationError if the file is not TOML. */
export function fromOauth2Proxy(sources: Sources): Migrated {
  const settings = settingsOf(sources);
  const report = new Report();
  const draft: Draft = { server: {}, tokens: {}, routes: [], upstreams: {} };
  listeners(settings, draft, report);
  issuers(settings, draft, report);
  users(settings, draft, report);
  routes(settings, draft, report);
  headers(settings, draft, report);
  const domains = settings.has("email_domains") ? settings.takeAll("email_domains") : [];
  if (domains.length > 0 && !domains.includes("*")) settings.add("email_domains", domains);
  reportRest(settings, LOST, report);
  return { configuration: draft, report: report.lines };
}

function listeners(settings: Settings, draft: Draft, report: Report): void {
  const { server } = draft;
  const https = settings.take("https_address");
  const http = settings.take("http_address");
  const certFile = settings.take("tls_cert_file");
  const keyFile = settings.take("tls_key_file");
  if (certFile !== undefined && keyFile !== undefined) {
    server.tls = { certFile, keyFile };
    server.listen = listenAddress(https ?? "0.0.0.0:443");
    report.carried("https_address, tls_cert_file, tls_key_file", "server.listen, server.tls");
    if (http !== undefined)
      report.lost("http_address", "there is only one listener, which uses TLS");
  } else {
    server.tls = "off";
    server.listen = listenAddress(http ?? "127.0.0.1:4180");
    report.changed("http_address", "server.tls is off: passwords and tokens travel unencrypted");
  }
  const least = settings.take("tls_min_version");
  if (least !== undefined && typeof server.tls === "object") {
    server.tls["minVersion"] = least.replace("TLS", "TLSv");
    report.carried("tls_min_version", "server.tls.minVersion");
  }
  if (settings.take("tls_cipher_suites") !== undefined)
    report.lost("tls_cipher_suites", "the suites are fixed");
  if (settings.takeFlag("reverse_proxy")) {
    const known = settings.takeAll("trusted_proxy_ips");
    if (known.length > 0) server.trustedProxies = known;
    report.changed(
      "reverse_proxy",
      "list the proxies in front of Sallyport in server.trustedProxies: it trusts no others",
    );
  }
  const metrics = settings.take("metrics_address");
  if (metrics === undefined || metrics === "") return;
  draft.admin = { listen: listenAddress(metrics) };
  report.carried("metrics_address", "admin.listen");
}

function issuers(settings: Settings, { tokens }: Draft, report: Report): void {
  const issuer = settings.take("oidc_issuer_url");
  const audience = settings.take("client_id");
  const extra = settings.takeAll("oidc_extra_audiences");
  const jwks = settings.take("oidc_jwks_url");
  const groups = settings.take("oidc_groups_claim");
  const subject = settings.take("user_id_claim");
  const algorithms = settings.takeAll("oidc_enabled_signing_algs");
  settings.takeAll("provider", "skip_oidc_discovery", "oidc_email_claim", "oidc_audience_claims");
  const claims = {
    ...(subject === undefined || subject === "sub" ? {} : { subject }),
    ...(groups === undefined || groups === "groups" ? {} : { groups }),
  };
  const keys = jwks === undefined ? { discovery: true } : { jwks: { url: jwks } };
  const shared = { algorithms: algorithms.length > 0 ? algorithms : ["RS256"] };
  const bearer = settings.takeFlag("skip_jwt_bearer_tokens");
  if (bearer) report.carried("skip_jwt_bearer_tokens", "always on");
  const trusted: Record<string, unknown>[] = [];
  if (issuer !== undefined && audience !== undefined) {
    trusted.push({
      ...{
        issuer,
        audience: extra.length > 0 ? [audience, ...extra] : audience,
        ...keys,
        ...shared,
      },
      ...(Object.keys(claims).length > 0 ? { claims } : {}),
    });
    tokens.issuer = audience;
    tokens.audience = audience;
    report.carried("oidc_issuer_url, client_id", "tokens.trusted[0]");
    if (!bearer)
      report.changed(
        "oidc_issuer_url",
        "browsers are not redirected there any more: clients must send its tokens",
      );
  } else if (audience !== undefined)
    report.lost("client_id", "without oidc_issuer_url there is no issuer");
  moreIssuers(settings, trusted, shared, report);
  if (trusted.length > 0) tokens.trusted = trusted;
}

function moreIssuers(
  settings: Settings,
  trusted: Record<string, unknown>[],
  shared: { readonly algorithms: readonly string[] },
  report: Report,
): void {
  for (const pair of settings.takeAll("extra_jwt_issuers")) {
    const at = pair.lastIndexOf("=");
    trusted.push({
      issuer: pair.slice(0, at),
      audience: pair.slice(at + 1),
      discovery: true,
      ...shared,
    });
    report.carried(
      `extra_jwt_issuers ${pair.slice(0, at)}`,
      `tokens.trusted[${trusted.length - 1}]`,
    );
  }
}

function users(settings: Settings, draft: Draft, report: Report): void {
  const path = settings.take("htpasswd_file");
  const groups = settings.takeAll("htpasswd_user_groups");
  if (path === undefined) return;
  draft.users = [{ kind: "htpasswd", path }];
  draft.tokens.keys = "keys";
  report.carried(
    "htpasswd_file",
    "users; POST /api/authenticate replaces the sign-in form and Basic",
  );
  report.changed(
    "tokens.keys",
    "new: generate a key with sallyport keys generate --directory keys",
  );
  if (groups.length > 0) {
    report.changed(
      "htpasswd_user_groups",
      "htpasswd has no groups: put the same hashes into a users file with groups",
    );
  }
}

function headers(settings: Settings, draft: Draft, report: Report): void {
  const passes = !settings.has("pass_user_headers") || settings.takeFlag("pass_user_headers");
  if (passes) {
    draft.identity = { headers: "oauth2-proxy" };
    report.carried("pass_user_headers", "identity.headers: X-Forwarded-User, X-Forwarded-Groups");
  }
  if (settings.takeFlag("pass_authorization_header")) {
    for (const route of draft.routes)
      if (route.auth !== "none") route.forwardAuthorization = "keep";
    report.changed(
      "pass_authorization_header",
      "forwardAuthorization: keep; the backend gets the caller's own token",
    );
  }
  if (settings.has("pass_host_header") && !settings.takeFlag("pass_host_header")) {
    for (const route of draft.routes) route.hostHeader = "target";
    report.carried("pass_host_header = false", "hostHeader: target");
  }
  if (settings.has("request_logging") && !settings.takeFlag("request_logging")) {
    draft.log = { access: "none" };
    report.carried("request_logging = false", "log.access: none");
  }
}
