/** What a proxy's configuration is read from. */
export interface Sources {
  /** The text of the file. */
  readonly file: string | undefined;
  /** A command line. */
  readonly flags: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The result for one setting of the other proxy. */
export interface ReportLine {
  readonly setting: string;
  /** `changed`: its counterpart needs review. `lost`: it is not translated. */
  readonly result: "carried" | "changed" | "lost";
  /** Its counterpart, or why it is not translated. */
  readonly words: string;
}

export interface DraftRoute {
  readonly name: string;
  readonly hosts?: readonly string[] | undefined;
  readonly path?: string | undefined;
  readonly exact?: string | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly auth?: "none" | undefined;
  require?: { readonly groups: { readonly any: readonly string[] } } | undefined;
  forwardAuthorization?: "keep";
  hostHeader?: "target";
  readonly rateLimit?: object | undefined;
  readonly limits?: { readonly bodyBytes: string } | undefined;
  readonly rewrite?: object | undefined;
  readonly upstream: string;
}

interface DraftUpstream {
  readonly targets: readonly string[];
  readonly tls?: object | undefined;
  readonly protocol?: "h2c" | undefined;
  timeouts?: object | undefined;
}

/** The parts of a configuration that other proxies can express. Members that are undefined are not set. */
export interface Draft {
  readonly server: {
    listen?: string;
    tls?: Record<string, unknown> | "off";
    limits?: { readonly bodyBytes: string };
    trustedProxies?: readonly string[];
  };
  admin?: { readonly listen: string };
  users?: readonly { readonly kind: string; readonly path: string }[];
  readonly tokens: {
    issuer?: string;
    audience?: string;
    keys?: string;
    trusted?: readonly object[];
  };
  identity?: { readonly headers: string | Readonly<Record<string, string>> };
  routes: DraftRoute[];
  readonly upstreams: Record<string, DraftUpstream>;
  log?: { readonly access: string };
}

/** The translated configuration and the report about it. */
export class Migration {
  readonly configuration: Draft = { server: {}, tokens: {}, routes: [], upstreams: {} };
  readonly report: ReportLine[] = [];

  carried(setting: string, words: string): void {
    this.report.push({ setting, result: "carried", words });
  }

  changed(setting: string, words: string): void {
    this.report.push({ setting, result: "changed", words });
  }

  lost(setting: string, words: string): void {
    this.report.push({ setting, result: "lost", words });
  }

  /** Sets where Sallyport's own keys are: the other proxy has none. */
  useOwnKeys(): void {
    this.configuration.tokens.keys = "keys";
    this.changed(
      "tokens.keys",
      "new: generate a key with sallyport keys generate --directory keys",
    );
  }

  /** Switches TLS off, as the other proxy's `setting` does. */
  withoutTls(setting: string): void {
    this.configuration.server.tls = "off";
    this.changed(setting, "server.tls is off: passwords and tokens travel unencrypted");
  }

  /** Returns a valid name for a route, as similar to the wanted one as possible. */
  routeName(wanted: string): string {
    return freeName(
      wanted,
      this.configuration.routes.map(({ name }) => name),
    );
  }

  /** Adds an upstream. Returns its name, which is as similar to the wanted one as possible. */
  addUpstream(wanted: string, upstream: DraftUpstream): string {
    const { upstreams } = this.configuration;
    const name = freeName(wanted, Object.keys(upstreams));
    upstreams[name] = upstream;
    return name;
  }
}

function freeName(wanted: string, taken: readonly string[]): string {
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

/** Returns the members, or undefined if none of them is defined. */
export function unlessEmpty<Members extends object>(members: Members): Members | undefined {
  return Object.values(members).some((value) => value !== undefined) ? members : undefined;
}

/** Returns an address such as `8443`, `:8443`, `*:8443` or `https://0.0.0.0:8443` as `host:port`. */
export function listenAddress(text: string): string {
  const address = text.replace(/^[a-z]+:\/\//, "");
  if (/^\d+$/.test(address)) return `0.0.0.0:${address}`;
  return address.startsWith(":") ? `0.0.0.0${address}` : address.replace(/^\*:/, "0.0.0.0:");
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
