import { parse } from "smol-toml";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import { UsageError } from "../command.ts";
import { type Sources } from "./migration.ts";
import { type Reasons, Settings, wordsIn } from "./source-settings.ts";

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
export function settingsOf({ file = "", flags, env }: Sources): Settings {
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
export const LOST: Reasons = [
  [
    /^cookie|^session|^redis|refresh/,
    "no cookies and no sessions: every request carries its token",
  ],
  [
    /^(?:client_secret|redirect_url|scope|prompt|approval_prompt|login_url|redeem_url|profile_url|validate_url|code_challenge|proxy_prefix|skip_provider_button|whitelist_domains|insecure_oidc|provider|backend_logout|resource|acr|force_|encode_state|relative_redirect|allow_query|signout|bearer_token_login_fallback|oidc_skip)/,
    "no redirects to a provider: clients send Authorization: Bearer",
  ],
  [/^(?:banner|footer|custom_|display_htpasswd_form|show_debug)/, "there is no sign-in page"],
  [/^email_domains$|^authenticated_emails/, "set require of the routes to groups or claims"],
  [/^(?:set_xauthrequest|set_authorization_header|set_basic)/, "nothing is added to responses"],
  [
    /^(?:pass_basic_auth|basic_auth_password|prefer_email|pass_access_token)/,
    "not sent to the backend: see identity.claims",
  ],
  [
    /^(?:github|google|azure|gitlab|keycloak|bitbucket|entra|adfs)/,
    "Sallyport accepts JWTs of any issuer with a key set, and other tokens with introspection",
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
