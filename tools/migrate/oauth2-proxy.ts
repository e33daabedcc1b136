import { parse } from "smol-toml";
import {
  type DraftRoute,
  listenAddress,
  Migration,
  type Reasons,
  Settings,
  type Sources,
  targetOf,
  unlessEmpty,
  wordsIn,
} from "./migration.ts";
import { isJsonObject } from "../../src/lib/text/strict-json.ts";
import { UsageError } from "../../src/cli/command.ts";

/** Translates upstreams, public paths and groups. */
function routes(settings: Settings, to: Migration): void {
  const { configuration } = to;
  const groups = settings.takeAll("allowed_groups", "allowed_roles");
  const response = settings.take("upstream_timeout");
  const main = upstreams(settings, to);
  const withUpstreams = [...configuration.routes];
  const publicRoutes: DraftRoute[] = [];
  for (const written of settings.takeAll("skip_auth_routes", "skip_auth_regex")) {
    const route = publicRoute(written, main, to);
    if (route === undefined) continue;
    configuration.routes.push(route);
    publicRoutes.push(route);
  }
  configuration.routes = [...publicRoutes, ...withUpstreams];
  if (main !== undefined) configuration.routes.push({ name: "everything", upstream: main });
  if (groups.length > 0) {
    for (const route of configuration.routes) {
      if (route.auth !== "none") route.require = { groups: { any: groups } };
    }
    to.carried("allowed_groups", "require.groups of every route that is not public");
  }
  if (response === undefined) return;
  for (const upstream of Object.values(configuration.upstreams)) {
    upstream.timeouts = { response };
  }
  to.carried("upstream_timeout", "upstreams.<name>.timeouts.response");
}

/** Returns the name of the upstream for all other paths, and adds routes for upstreams with a path. */
function upstreams(settings: Settings, to: Migration): string | undefined {
  let main: string | undefined;
  for (const written of settings.takeAll("upstreams")) {
    const found = targetOf(written);
    if (found === undefined) {
      to.lost(
        `upstreams ${written.replace(/:.*/s, "://…")}`,
        "upstreams must be HTTP servers: Sallyport serves no files and no fixed responses",
      );
      continue;
    }
    const { target, path } = found;
    const isMain = path === "" || path === "/";
    const name = to.addUpstream(isMain ? "app" : path, { targets: [target] });
    if (isMain) main = name;
    else
      to.configuration.routes.push({
        name,
        ...(path.endsWith("/") ? { path } : { exact: path }),
        upstream: name,
      });
    to.carried(`upstreams ${target}${path}`, `upstreams.${name}`);
  }
  return main;
}

/** Returns the route for a setting such as `GET=^/docs/` or `^/healthz$`; undefined if a path cannot express it. */
function publicRoute(
  written: string,
  upstream: string | undefined,
  to: Migration,
): DraftRoute | undefined {
  const [, method, not, pattern = ""] = /^(?:([A-Z]+)(!?)=)?(.*)$/s.exec(written) ?? [];
  const matched = not === "!" ? undefined : regexPath(pattern);
  const setting = `skip_auth_routes ${written}`;
  if (matched === undefined || upstream === undefined) {
    to.lost(setting, "it is not a plain path: write a route with exact or path, and auth: none");
    return undefined;
  }
  const { exact, path } = matched;
  const name = to.routeName(exact ?? path ?? "");
  if (path !== undefined && !path.endsWith("/"))
    to.changed(setting, `routes: ${path} and all paths below it, but not ${path}x`);
  else to.carried(setting, `routes: ${name}, with auth: none`);
  const methods = method === "GET" ? ["GET", "HEAD"] : method === undefined ? undefined : [method];
  return { name, exact, path, methods, auth: "none", upstream };
}

const LITERAL = /^(?:[A-Za-z0-9_~!@,/-]|\\[./_-])+$/;

/**
 * Converts a regular expression to a path: `^/docs/` is a prefix, `^/healthz$` one path. Returns undefined if a path
 * cannot express it.
 */
function regexPath(pattern: string): { exact?: string; path?: string } | undefined {
  const body = pattern.replace(/^\^/, "").replace(/(?:\.\*)?\$?$/, "");
  if (!pattern.startsWith("^/") || !LITERAL.test(body)) return undefined;
  const path = body.replaceAll(/\\(.)/g, "$1");
  return pattern.endsWith("$") && !pattern.endsWith(".*$") ? { exact: path } : { path };
}

/** Settings whose flags have a name in the singular. */
const PLURALS = [
  ...[
    "upstream",
    "email_domain",
    "skip_auth_route",
    "skip_auth_regex",
    "allowed_group",
    "allowed_role",
  ],
  ...["extra_jwt_issuer", "whitelist_domain", "trusted_ip", "htpasswd_user_group", "cookie_domain"],
  ...["oidc_extra_audience", "api_route", "trusted_proxy_ip"],
];
const LISTS = new Set(PLURALS.map((name) => `${name}s`).concat("skip_auth_regex"));

const SWITCH =
  /^(?:skip_(?!auth_r)|pass_|set_|reverse_proxy$|cookie_(?:secure|httponly)|.*_logging$|prefer_|insecure_|ssl_insecure|force_|proxy_websockets|api_)/;

/**
 * Merges the settings of all sources: flags override the environment, which overrides the file.
 *
 * @throws UsageError if the file is not TOML.
 */
function settingsOf({ file = "", flags, env }: Sources): Settings {
  const settings = new Settings();
  for (const [name, values] of Object.entries(tomlIn(file))) settings.set(name, values);
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("OAUTH2_PROXY_") || value === undefined) continue;
    const key = canonical(name.slice("OAUTH2_PROXY_".length).toLowerCase());
    settings.set(key, LISTS.has(key) ? value.split(",") : [value]);
  }
  const given = new Settings();
  given.addFlags(wordsIn(flags), (name) => SWITCH.test(name));
  for (const name of given.names()) settings.set(canonical(name), given.takeAll(name));
  return settings;
}

function canonical(name: string): string {
  return PLURALS.includes(name) && name !== "skip_auth_regex" ? `${name}s` : name;
}

function tomlIn(text: string): Record<string, string[]> {
  let value: unknown;
  try {
    value = parse(text);
  } catch {
    throw new UsageError("the file is not TOML, the format of oauth2-proxy's configuration");
  }
  if (!isJsonObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      canonical(name),
      (Array.isArray(each) ? each : [each]).map(String),
    ]),
  );
}

/** Why settings of oauth2-proxy have no counterpart. */
const LOST: Reasons = [
  [
    /^cookie|^session|^redis|refresh/,
    "the session is a token in a cookie of this host alone: nothing is stored or refreshed",
  ],
  [
    /^(?:client_secret|redirect_url|scope|prompt|approval_prompt|login_url|redeem_url|profile_url|validate_url|code_challenge|proxy_prefix|skip_provider_button|whitelist_domains|insecure_oidc|provider|backend_logout|resource|acr|force_|encode_state|relative_redirect|allow_query|signout|bearer_token_login_fallback|oidc_skip)/,
    "not configurable: authorization code with PKCE, by the provider's discovery document",
  ],
  [
    /^(?:banner|footer|custom_|display_htpasswd_form|show_debug)/,
    "see browser.page: title, message and logo",
  ],
  [/^email_domains$|^authenticated_emails/, "set require of the routes to groups or claims"],
  [/^(?:set_xauthrequest|set_authorization_header|set_basic)/, "nothing is added to responses"],
  [
    /^(?:pass_basic_auth|basic_auth_password|prefer_email|pass_access_token)/,
    "not sent to the backend: see identity.claims",
  ],
  [
    /^(?:github|google|azure|gitlab|keycloak|bitbucket|entra|adfs)/,
    "name the issuer in browser.providers: a provider without OpenID Connect has no counterpart",
  ],
  [
    /^ssl_/,
    "the backend's certificate is verified: name its authority in upstreams.<name>.tls.caFile",
  ],
  [/^trusted_ips$/, "see allow and deny of a route; no address may pass without a token"],
  [
    /^skip_auth_(?:preflight|strip)/,
    "list the origins in cors; identity headers that clients send never pass",
  ],
  [/logging|^exclude_logging|^log_/, "see log.level, log.format and log.access"],
  [/^(?:ping|ready)_/, "use /livez and /readyz on the admin listener"],
  [
    /^(?:gcp_healthchecks|force_json_errors|real_client_ip_header|flush_interval|proxy_websockets|api_routes|skip_claims)/,
    "not configurable: always on, or without a counterpart",
  ],
];

/** Translates the settings of oauth2-proxy. @throws UsageError if the file is not TOML. */
export function fromOauth2Proxy(sources: Sources): Migration {
  const settings = settingsOf(sources);
  const to = new Migration();
  for (const translate of [listeners, issuers, users, routes, headers]) translate(settings, to);
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

/** The provider: people sign in there, and programs bring its tokens. */
function issuers(settings: Settings, to: Migration): void {
  const { tokens } = to.configuration;
  const issuer = settings.take("oidc_issuer_url");
  const clientId = settings.take("client_id");
  const extra = settings.takeAll("oidc_extra_audiences");
  const jwks = settings.take("oidc_jwks_url");
  const groups = settings.take("oidc_groups_claim");
  const subject = settings.take("user_id_claim");
  const named = settings.takeAll("oidc_enabled_signing_algs");
  const algorithms = named.length > 0 ? named : ["RS256"];
  const claims = unlessEmpty({
    subject: subject === "sub" ? undefined : subject,
    groups: groups === "groups" ? undefined : groups,
  });
  settings.takeAll("provider", "skip_oidc_discovery", "oidc_email_claim", "oidc_audience_claims");
  const trusted: object[] = [];
  let domains: readonly string[] = [];
  if (issuer !== undefined && clientId !== undefined) {
    domains = settings.takeAll("email_domains").filter((domain) => domain !== "*");
    provider({ issuer, clientId, claims, domains }, settings, to);
    if (settings.takeFlag("skip_jwt_bearer_tokens")) {
      trusted.push({
        issuer,
        audience: extra.length > 0 ? [clientId, ...extra] : clientId,
        ...(jwks === undefined ? { discovery: true } : { jwks: { url: jwks } }),
        algorithms,
        claims,
      });
      to.carried("skip_jwt_bearer_tokens", "tokens.trusted[0]");
    }
    tokens.issuer = clientId;
    tokens.audience = clientId;
  } else if (clientId !== undefined)
    to.lost("client_id", "without oidc_issuer_url there is no issuer");
  for (const pair of settings.takeAll("extra_jwt_issuers")) {
    const [other, ofOther] = splitAtLast(pair, "=");
    trusted.push({ issuer: other, audience: ofOther, discovery: true, algorithms });
    to.carried(`extra_jwt_issuers ${other}`, `tokens.trusted[${trusted.length - 1}]`);
  }
  if (trusted.length === 0) return;
  tokens.trusted = trusted;
  if (domains.length > 0) {
    to.changed(
      "email_domains",
      "not for tokens that programs bring (tokens.trusted): set require of the routes",
    );
  }
}

interface Client {
  readonly issuer: string;
  readonly clientId: string;
  readonly claims: object | undefined;
  /** The domains of the addresses that people may have; empty for all. */
  readonly domains: readonly string[];
}

/** People sign in at the provider, and get a session of Sallyport's own. */
function provider(
  { issuer, clientId, claims, domains }: Client,
  settings: Settings,
  to: Migration,
): void {
  const secretFile = settings.take("client_secret_file");
  settings.take("client_secret");
  const scopes = settings.take("scope")?.split(" ");
  const label = settings.take("provider_display_name");
  const alone = !settings.names().includes("htpasswd_file");
  const logo = settings.take("custom_sign_in_logo");
  const require = domains.length === 0 ? undefined : { claims: [{ claim: "hd", any: domains }] };
  to.useOwnKeys();
  to.configuration.browser = {
    page: unlessEmpty({ logo: logo === "-" ? undefined : logo }),
    providers: [
      {
        name: "oidc",
        label,
        issuer,
        clientId,
        scopes,
        claims,
        require,
        clientSecret: `\${file:${secretFile ?? "oidc-secret"}}`,
        automatic: settings.takeFlag("skip_provider_button") && alone ? true : undefined,
      },
    ],
  };
  to.carried("oidc_issuer_url, client_id", "browser.providers[0]");
  if (secretFile === undefined) to.changed("client_secret", "put it into the file oidc-secret");
  else to.carried("client_secret_file", "browser.providers[0].clientSecret");
  settings.take("redirect_url");
  to.changed(
    "redirect_url",
    "register https://HOST/_sallyport/login/oidc/callback at the provider",
  );
  if (require !== undefined) {
    to.changed(
      "email_domains",
      "browser.providers[0].require: the claim hd, which Google sends; at another provider name groups or a claim that say the same",
    );
  }
  settings.takeAll("cookie_secret");
  to.carried("cookie_secret", "not needed: the session is a token that the signing key protects");
  if (settings.take("cookie_expire") !== undefined) {
    to.changed(
      "cookie_expire",
      "browser.lifetime, at most tokens.lifetime; nothing extends a session",
    );
  }
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
  to.carried("htpasswd_file", "users; the sign-in page and POST /api/authenticate replace Basic");
  if (to.configuration.tokens.keys === undefined) to.useOwnKeys();
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
