/** The result for one setting of the other proxy. */
export interface ReportLine {
  readonly setting: string;
  /** `changed`: its counterpart needs review. `lost`: it is not translated. */
  readonly result: "carried" | "changed" | "lost";
  /** Its counterpart, or why it is not translated. */
  readonly words: string;
}

/** The translated configuration and the report about it. */
export interface Migrated {
  readonly configuration: Draft;
  readonly report: readonly ReportLine[];
}

export interface DraftRoute {
  name: string;
  hosts?: string[];
  path?: string;
  exact?: string;
  methods?: string[];
  auth?: "none";
  require?: { groups: { any: string[] } };
  forwardAuthorization?: "keep";
  hostHeader?: "target";
  rateLimit?: { requests: number; within: string; burst?: number; by: "address" };
  limits?: { bodyBytes: string };
  rewrite?: { stripPrefix?: string; addPrefix?: string };
  upstream: string;
}

interface DraftUpstream {
  targets: string[];
  tls?: Record<string, string>;
  timeouts?: Record<string, string>;
}

/** The parts of a configuration that other proxies can express. */
export interface Draft {
  server: {
    listen?: string;
    tls?: Record<string, unknown> | "off";
    limits?: { bodyBytes: string };
    trustedProxies?: string[];
  };
  admin?: { listen: string };
  users?: { kind: string; path: string }[];
  tokens: {
    issuer?: string;
    audience?: string;
    keys?: string;
    trusted?: Record<string, unknown>[];
  };
  identity?: { headers: string | Record<string, string> };
  routes: DraftRoute[];
  upstreams: Record<string, DraftUpstream>;
  log?: { access: string };
}

/** The other proxy's configuration cannot be read; the message says why, without values. */
export class MigrationError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MigrationError";
  }
}

export class Report {
  readonly lines: ReportLine[] = [];

  carried(setting: string, where: string): void {
    this.lines.push({ setting, result: "carried", words: where });
  }

  changed(setting: string, words: string): void {
    this.lines.push({ setting, result: "changed", words });
  }

  lost(setting: string, why: string): void {
    this.lines.push({ setting, result: "lost", words: why });
  }
}

/** Returns an address such as `8443`, `:8443`, `*:8443` or `https://0.0.0.0:8443` as `host:port`. */
export function listenAddress(text: string): string {
  const address = text.replace(/^[a-z]+:\/\//, "");
  if (/^\d+$/.test(address)) return `0.0.0.0:${address}`;
  return address.startsWith(":") ? `0.0.0.0${address}` : address.replace(/^\*:/, "0.0.0.0:");
}

/** Returns a valid name for a route or an upstream that is not taken, as similar to the wanted one as possible. */
export function freeName(wanted: string, taken: readonly string[]): string {
  const name =
    wanted
      .replaceAll(/[^A-Za-z0-9]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .toLowerCase() || "root";
  if (!taken.includes(name)) return name;
  let number = 2;
  while (taken.includes(`${name}-${number}`)) number += 1;
  return `${name}-${number}`;
}

/** Splits a URL into its target and its path; undefined if it is not an http or https URL. */
export function targetOf(
  text: string,
): { readonly target: string; readonly path: string } | undefined {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) return undefined;
  return {
    target: `${url.protocol}//${url.host}`,
    path: text.includes(`${url.host}/`) ? url.pathname : "",
  };
}
