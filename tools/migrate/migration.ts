/** Why the settings whose names match a pattern have no counterpart. */
export type Reasons = readonly (readonly [pattern: RegExp, why: string])[];

/** Settings with all their values, by name. Names are those of the flags with `_` for `-`: `skip_auth_routes`. */
export class Settings {
  readonly #values = new Map<string, string[]>();

  /** Sets the values of a setting. */
  set(name: string, values: readonly string[]): void {
    this.#values.set(name, [...values]);
  }

  /** Adds the flags of a command line: `--name=value`, `--name value` and `--name`, as Go's flag package does. */
  addFlags(args: readonly string[], isSwitch: (name: string) => boolean): void {
    for (let at = 0; at < args.length; at += 1) {
      const flag = /^--?([A-Za-z][\w.-]*)(?:=(.*))?$/s.exec(args[at] ?? "");
      if (flag === null) continue;
      const [, written = "", given] = flag;
      const name = written.replaceAll("-", "_").toLowerCase();
      const next = args[at + 1];
      const isBare = isSwitch(name) || next === undefined || /^--?[A-Za-z]/.test(next);
      if (given === undefined && !isBare) at += 1;
      const value = given ?? (isBare ? "true" : next);
      this.#values.set(name, [...(this.#values.get(name) ?? []), value]);
    }
  }

  /** Removes settings and returns their values. */
  takeAll(...names: readonly string[]): string[] {
    return names.flatMap((name) => {
      const found = this.#values.get(name) ?? [];
      this.#values.delete(name);
      return found;
    });
  }

  /** The same for settings whose values are lists separated by commas. */
  takeList(name: string): string[] {
    return this.takeAll(name).flatMap((each) => each.split(","));
  }

  take(...names: readonly string[]): string | undefined {
    return this.takeAll(...names).at(-1);
  }

  /** @param otherwise the result if it is not set. */
  takeFlag(name: string, otherwise = false): boolean {
    const value = this.take(name);
    return value === undefined ? otherwise : !/^(?:false|f|0)$/i.test(value);
  }

  names(): string[] {
    return [...this.#values.keys()];
  }

  /** Reports all remaining settings as lost. */
  reportRest(reasons: Reasons, to: Migration): void {
    for (const name of this.names()) to.lost(name, reasonFor(name, reasons) ?? UNKNOWN);
  }
}

/** Why a setting that is neither translated nor explained is lost. */
export const UNKNOWN = "unknown to this command: see the guide";

export function reasonFor(name: string, reasons: Reasons): string | undefined {
  return reasons.find(([pattern]) => pattern.test(name))?.[1];
}

/** Splits a command line like a shell, but without substitutions. */
export function wordsIn(line = ""): string[] {
  return Array.from(line.matchAll(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs), ([word]) =>
    word.replaceAll(/\\(.)|"((?:[^"\\]|\\.)*)"|'([^']*)'/gs, (_, escaped, double, single) =>
      String(escaped ?? double ?? single).replaceAll(/\\(.)/gs, "$1"),
    ),
  );
}

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
  browser?: { readonly page?: object | undefined; readonly providers?: readonly object[] };
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
