import { listenAddress, Migration, type Sources, unlessEmpty } from "./migration.ts";
import { routes } from "./oauth2-routes.ts";
import { LOST, settingsOf } from "./oauth2-settings.ts";
import type { Settings } from "./source-settings.ts";

/** Translates the settings of oauth2-proxy. @throws UsageError if the file is not TOML. */
export function fromOauth2Proxy(sources: Sources): Migration {
  const settings = settingsOf(sources);
  const to = new Migration();
  for (const translate of [listeners, issuers, users, routes, headers]) translate(settings, to);
  const domains = settings.takeAll("email_domains");
  if (domains.length > 0 && !domains.includes("*")) settings.set("email_domains", domains);
  settings.reportRest(LOST, to);
  return to;
}

function listeners(settings: Settings, to: Migration): void {
  const { configuration } = to;
  const { server } = configuration;
  const https = settings.take("https_address");
  const http = settings.take("http_address");
  const certFile = settings.take("tls_cert_file");
  const keyFile = settings.take("tls_key_file");
  if (certFile !== undefined && keyFile !== undefined) {
    server.tls = { certFile, keyFile };
    server.listen = listenAddress(https ?? "0.0.0.0:443");
    to.carried("https_address, tls_cert_file, tls_key_file", "server.listen, server.tls");
    if (http !== undefined) to.lost("http_address", "there is only one listener, which uses TLS");
  } else {
    to.withoutTls("http_address");
    server.listen = listenAddress(http ?? "127.0.0.1:4180");
  }
  const least = settings.take("tls_min_version");
  if (least !== undefined && typeof server.tls === "object") {
    server.tls["minVersion"] = least.replace("TLS", "TLSv");
    to.carried("tls_min_version", "server.tls.minVersion");
  }
  if (settings.take("tls_cipher_suites") !== undefined)
    to.lost("tls_cipher_suites", "the suites are fixed");
  if (settings.takeFlag("reverse_proxy")) {
    const known = settings.takeAll("trusted_proxy_ips");
    if (known.length > 0) server.trustedProxies = known;
    to.changed(
      "reverse_proxy",
      "list the proxies in front of Sallyport in server.trustedProxies: it trusts no others",
    );
  }
  const metrics = settings.take("metrics_address") ?? "";
  if (metrics === "") return;
  configuration.admin = { listen: listenAddress(metrics) };
  to.carried("metrics_address", "admin.listen");
}

function issuers(settings: Settings, to: Migration): void {
  const { tokens } = to.configuration;
  const issuer = settings.take("oidc_issuer_url");
  const audience = settings.take("client_id");
  const extra = settings.takeAll("oidc_extra_audiences");
  const jwks = settings.take("oidc_jwks_url");
  const groups = settings.take("oidc_groups_claim");
  const subject = settings.take("user_id_claim");
  const named = settings.takeAll("oidc_enabled_signing_algs");
  const algorithms = named.length > 0 ? named : ["RS256"];
  settings.takeAll("provider", "skip_oidc_discovery", "oidc_email_claim", "oidc_audience_claims");
  const bearer = settings.takeFlag("skip_jwt_bearer_tokens");
  if (bearer) to.carried("skip_jwt_bearer_tokens", "always on");
  const trusted: object[] = [];
  if (issuer !== undefined && audience !== undefined) {
    trusted.push({
      issuer,
      audience: extra.length > 0 ? [audience, ...extra] : audience,
      ...(jwks === undefined ? { discovery: true } : { jwks: { url: jwks } }),
      algorithms,
      claims: unlessEmpty({
        subject: subject === "sub" ? undefined : subject,
        groups: groups === "groups" ? undefined : groups,
      }),
    });
    tokens.issuer = audience;
    tokens.audience = audience;
    to.carried("oidc_issuer_url, client_id", "tokens.trusted[0]");
    if (!bearer)
      to.changed(
        "oidc_issuer_url",
        "browsers are not redirected there any more: clients must send its tokens",
      );
  } else if (audience !== undefined)
    to.lost("client_id", "without oidc_issuer_url there is no issuer");
  for (const pair of settings.takeAll("extra_jwt_issuers")) {
    const [other, ofOther] = splitAtLast(pair, "=");
    trusted.push({ issuer: other, audience: ofOther, discovery: true, algorithms });
    to.carried(`extra_jwt_issuers ${other}`, `tokens.trusted[${trusted.length - 1}]`);
  }
  if (trusted.length > 0) tokens.trusted = trusted;
}

function splitAtLast(text: string, separator: string): [before: string, behind: string] {
  const at = text.lastIndexOf(separator);
  return [text.slice(0, at), text.slice(at + 1)];
}

function users(settings: Settings, to: Migration): void {
  const path = settings.take("htpasswd_file");
  const groups = settings.takeAll("htpasswd_user_groups");
  if (path === undefined) return;
  to.configuration.users = [{ kind: "htpasswd", path }];
  to.carried("htpasswd_file", "users; POST /api/authenticate replaces the sign-in form and Basic");
  to.useOwnKeys();
  if (groups.length > 0) {
    to.changed(
      "htpasswd_user_groups",
      "htpasswd has no groups: put the same hashes into a users file with groups",
    );
  }
}

function headers(settings: Settings, to: Migration): void {
  const { configuration } = to;
  if (settings.takeFlag("pass_user_headers", true)) {
    configuration.identity = { headers: "oauth2-proxy" };
    to.carried("pass_user_headers", "identity.headers: X-Forwarded-User, X-Forwarded-Groups");
  }
  if (settings.takeFlag("pass_authorization_header")) {
    for (const route of configuration.routes)
      if (route.auth !== "none") route.forwardAuthorization = "keep";
    to.changed(
      "pass_authorization_header",
      "forwardAuthorization: keep; the backend gets the caller's own token",
    );
  }
  if (!settings.takeFlag("pass_host_header", true)) {
    for (const route of configuration.routes) route.hostHeader = "target";
    to.carried("pass_host_header = false", "hostHeader: target");
  }
  if (!settings.takeFlag("request_logging", true)) {
    configuration.log = { access: "none" };
    to.carried("request_logging = false", "log.access: none");
  }
}
