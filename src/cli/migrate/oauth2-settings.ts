import { parse } from "smol-toml";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import { MigrationError } from "./migration.ts";
import { addFlags, Settings, wordsIn } from "./source-settings.ts";

/** The sources of the settings of oauth2-proxy: flags override the environment, which overrides the file. */
export interface Sources {
  readonly file?: string | undefined;
  readonly flags?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
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

/** Merges the settings of all sources. @throws MigrationError if the file is not TOML. */
export function settingsOf({ file, flags, env }: Sources): Settings {
  const settings = new Settings();
  for (const [name, values] of Object.entries(file === undefined ? {} : tomlIn(file))) {
    settings.add(name, values, false);
  }
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith("OAUTH2_PROXY_") || value === undefined) continue;
    const key = canonical(name.slice("OAUTH2_PROXY_".length).toLowerCase());
    settings.add(key, LISTS.has(key) ? value.split(",") : [value], false);
  }
  const given = new Settings();
  addFlags(given, wordsIn(flags ?? ""), (name) => SWITCH.test(name));
  for (const name of given.names()) settings.add(canonical(name), given.takeAll(name), false);
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
    throw new MigrationError("the file is not TOML, the format of oauth2-proxy's configuration");
  }
  if (!isJsonObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      canonical(name),
      (Array.isArray(each) ? each : [each]).map(String),
    ]),
  );
}
