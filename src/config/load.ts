import { dirname, isAbsolute, resolve } from "node:path";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import { knownKeys, type KnownKeys } from "./schema-parts.ts";
import { nearest } from "../lib/text/nearest.ts";
import { mappingAt, pathName, type PathProblem, replacedAt, valueAt } from "./written.ts";
import {
  parsePositionedYaml,
  type PositionedYaml,
  type YamlPath,
} from "../lib/files/positioned-yaml.ts";
import { validate } from "./validate.ts";
import { interpolate } from "./interpolation.ts";
import { type FileContent, readFailure, readRegularFileSync } from "../lib/files/regular-file.ts";
import { describePermissions } from "../lib/files/private-file.ts";
import { mayHoldSecret } from "./render.ts";

/** A value that does not come from the file, with a description of its origin. */
interface Overlay {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly origin: string;
}

interface Overlays {
  /** Later ones override earlier ones. */
  readonly overlays: readonly Overlay[];
  readonly problems: readonly ConfigProblem[];
}

const PREFIX = "SALLYPORT_";

/**
 * Variables that Kubernetes sets for every Service of the namespace, such as `SALLYPORT_SERVICE_HOST` and
 * `SALLYPORT_PORT_8443_TCP_ADDR`. They are ignored: a Service named `sallyport` must not prevent the start.
 */
const SERVICE_LINK =
  /^SALLYPORT_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)$/;

const SERVICE_LINK_URL = /^(?:tcp|udp|sctp):\/\//;

/**
 * Reads variables such as `SALLYPORT_SERVER__LISTEN`: `__` separates keys, case is ignored. `SALLYPORT_SHARED__PASSWORD_FILE` names
 * a file with the value, as images of databases have it.
 *
 * @param written the value of the file; variables may use the names that it defines (those of upstreams).
 */
function environmentOverlays(
  env: Readonly<Record<string, string | undefined>>,
  written: unknown,
): Overlays {
  const entries = Object.entries(env).flatMap(([name, value]) => {
    const ours = name.startsWith(PREFIX) && value !== undefined;
    if (!ours || SERVICE_LINK.test(name) || SERVICE_LINK_URL.test(value)) return [];
    const segments = name.slice(PREFIX.length).split("__");
    return [{ segments, value, origin: `environment variable ${name}` }];
  });
  const asVariable = (path: string): string => PREFIX + path.replaceAll(".", "__").toUpperCase();
  return read(entries, written, asVariable);
}

/** Reads flags by dotted path: `{ "server.listen": "127.0.0.1:0" }`. */
function flagOverlays(flags: Readonly<Record<string, string>>, written: unknown): Overlays {
  const entries = Object.entries(flags).map(([path, value]) => ({
    segments: path.split("."),
    value,
    origin: `flag ${path}`,
  }));
  return read(entries, written, (path) => path);
}

interface Entry {
  readonly segments: readonly string[];
  readonly value: string;
  readonly origin: string;
}

function read(
  entries: readonly Entry[],
  written: unknown,
  spell: (path: string) => string,
): Overlays {
  const overlays: Overlay[] = [];
  const problems: ConfigProblem[] = [];
  const known = knownKeys();
  for (const { segments, value, origin } of entries) {
    const direct = pathOf(segments, known, written);
    const path = direct ?? pathOf(withoutFile(segments), known, written);
    const parsed = path === direct ? valueOf(value) : { value: `\${file:${value}}` };
    if (path === undefined) {
      const near = nearest(spell(segments.join(".")), dottedPaths(known).map(spell));
      const hint = near === undefined ? {} : { hint: `did you mean ${near}?` };
      problems.push({ file: origin, message: "does not name a known key", ...hint });
    } else if (parsed === undefined) {
      problems.push({ file: origin, message: "is not a valid list or mapping" });
    } else {
      overlays.push({ path, value: parsed.value, origin });
    }
  }
  // Whole sections are applied before the keys within them.
  overlays.sort((a, b) => a.path.length - b.path.length);
  return { overlays, problems };
}

/** Returns the segments without the suffix `_FILE`, which no key has. */
function withoutFile(segments: readonly string[]): string[] {
  return segments.map((segment, index) =>
    index === segments.length - 1 ? segment.replace(/_file$/i, "") : segment,
  );
}

/** Returns the path as the schema spells it, or undefined if there is no such key. */
function pathOf(
  segments: readonly string[],
  known: KnownKeys,
  written: unknown,
): string[] | undefined {
  const path: string[] = [];
  let here: KnownKeys | undefined = known;
  let value = written;
  for (const segment of segments) {
    const ownNames: readonly string[] = here.open ? Object.keys(mappingAt(value)) : [];
    const key = [...here.names, ...ownNames].find((name) => sameKey(name, segment));
    const wanted: string = key ?? segment.toLowerCase();
    if (key === undefined && !(here.open && /^[a-z0-9]/.test(wanted))) return undefined;
    here = here.below(wanted);
    if (here === undefined) return undefined;
    path.push(wanted);
    value = valueAt(value, [wanted]);
  }
  return path;
}

/** Ignores case, and the difference between `-` and `_`: names of variables cannot contain `-`. */
function sameKey(name: string, segment: string): boolean {
  return name.toLowerCase().replaceAll("-", "_") === segment.toLowerCase().replaceAll("-", "_");
}

/** Parses lists and mappings in YAML's flow syntax; everything else is literal text. */
function valueOf(text: string): { value: unknown } | undefined {
  if (!/^\s*(?:\[.*\]|\{.*\})\s*$/s.test(text)) return { value: text };
  const { value, problems } = parsePositionedYaml(text, "");
  return problems.length === 0 ? { value } : undefined;
}

function dottedPaths(known: KnownKeys): string[] {
  return known.names.flatMap((name) => {
    const below = known.below(name);
    return [
      name,
      ...(below === undefined ? [] : dottedPaths(below).map((path) => `${name}.${path}`)),
    ];
  });
}

export interface ConfigurationSources {
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The values of flags, by dotted path: `{ "server.listen": "127.0.0.1:0" }`. */
  readonly overrides: Readonly<Record<string, string>>;
}

export type LoadedConfiguration = ReturnType<typeof loadConfiguration>;

interface ValueSource {
  /** `flag server.listen`, `environment variable SALLYPORT_…`, or file and line. */
  readonly origin: string;
  /** The text with its references, if the value contains any. */
  readonly reference: string | undefined;
}

/**
 * Reads and validates the configuration. Flags override the environment, which overrides the file, which overrides the
 * defaults.
 *
 * @param read reads the file itself and those of every `${file:…}`; throws as `readRegularFileSync` does.
 * @throws ConfigError with all problems, in the order of the file.
 */
export function loadConfiguration(
  sources: ConfigurationSources,
  read: (path: string) => FileContent = readRegularFileSync,
) {
  const { file, env, overrides } = sources;
  const context = { env, directory: dirname(resolve(file)), read };
  const text = readText(file, read);
  const yaml = parsePositionedYaml(text.text, file);
  const withoutSource = withoutSecretLines();
  if (yaml.value === undefined) throw new ConfigError(yaml.problems.map(withoutSource));

  const fromEnvironment = environmentOverlays(env, yaml.value);
  const fromFlags = flagOverlays(overrides, yaml.value);
  const overlays = [...fromEnvironment.overlays, ...fromFlags.overlays];
  // References are resolved last, because overlays may replace some that cannot be resolved.
  const raw = overlays.reduce<unknown>(
    (whole, { path, value }) => replacedAt(whole, path, value),
    yaml.value,
  );
  const interpolated = interpolate(raw, context);
  const written = interpolated.value;
  const texts = [...interpolated.whole, ...overlays.map(({ path }) => path)];

  const unresolved = new Set(interpolated.problems.map(({ path }) => JSON.stringify(path)));
  const validation = validate(written, texts, context);
  const placed = placer(file, yaml, overlays);
  const problem = (problem: PathProblem): ConfigProblem => withoutSource(placed(problem));
  const problems = [
    ...yaml.problems.map(withoutSource),
    ...interpolated.problems.map(problem),
    ...validation.problems.filter(({ path }) => !unresolved.has(JSON.stringify(path))).map(problem),
    ...fromEnvironment.problems,
    ...fromFlags.problems,
  ];
  if (raw === null) {
    const hint = "make one with sallyport init; sallyport demo runs without one";
    throw new ConfigError([{ file, message: "the file is empty", hint }]);
  }
  if (validation.configuration === undefined || problems.length > 0) {
    throw new ConfigError(problems.toSorted(byPlace));
  }
  return {
    configuration: validation.configuration,
    /** The files that it was read from, including those of every `${file:…}`, with their fingerprints. */
    files: new Map([[file, text.print], ...interpolated.files]),
    /** Adds the position in the file to a problem that is found later. */
    problem,
    /** The merged value of all sources in the syntax of the file, without defaults. */
    written,
    /** Returns the source of the value at a path, or undefined if none is written. */
    sourceOf: valueSources(file, yaml, overlays, raw),
  };
}

/** @param raw the merged value of all sources, before references are resolved. */
function valueSources(
  file: string,
  yaml: PositionedYaml,
  overlays: readonly Overlay[],
  raw: unknown,
) {
  return (path: YamlPath): ValueSource | undefined => {
    const text = valueAt(raw, path);
    if (text === undefined) return undefined;
    const reference = typeof text === "string" && text.includes("${") ? text : undefined;
    const overlay = overlayAt(overlays, path);
    const origin = overlay?.origin ?? `${file}:${yaml.positionOf(path, "key").line}`;
    return { origin, reference };
  };
}

const MISSING_HINT = "name it with --config or SALLYPORT_CONFIG; sallyport demo runs without one";

function readText(
  file: string,
  read: (path: string) => FileContent,
): { readonly text: string; readonly print: string } {
  const refuse = (message: string, hint?: string): never => {
    const where = hint === undefined || isAbsolute(file) ? hint : `in ${process.cwd()}; ${hint}`;
    throw new ConfigError([{ file, message, ...(where === undefined ? {} : { hint: where }) }]);
  };
  let content: FileContent;
  try {
    content = read(file);
  } catch (error) {
    const why = readFailure(error);
    if (why === "ENOENT") return refuse("the file does not exist", MISSING_HINT);
    return refuse(
      why === "EACCES"
        ? `the file cannot be read (${why}: ${describePermissions(file)})`
        : `the file cannot be read (${why})`,
    );
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(content.bytes);
    return { text, print: content.fingerprint };
  } catch {
    return refuse("the file is not UTF-8 text");
  }
}

function placer(file: string, yaml: PositionedYaml, overlays: readonly Overlay[]) {
  return (problem: PathProblem): ConfigProblem => {
    const { path, of = "value", hint, related } = problem;
    return {
      ...placed(path, of),
      message: `${pathName(path)} ${problem.message}`,
      ...(hint === undefined ? {} : { hint }),
      ...(related === undefined
        ? {}
        : { related: { ...placed(related.path, "value"), message: related.message } }),
    };
  };

  function placed(path: YamlPath, of: "key" | "value"): Omit<ConfigProblem, "message"> {
    const overlay = overlayAt(overlays, path);
    return overlay === undefined
      ? { file, ...yaml.positionOf(path, of) }
      : { file: overlay.origin };
  }
}

/** Returns the overlay that set the value at a path. */
function overlayAt(overlays: readonly Overlay[], path: YamlPath): Overlay | undefined {
  return overlays.findLast((overlay) =>
    overlay.path.every((segment, index) => segment === path[index]),
  );
}

/** Returns a function that removes the source line from a problem if the line may contain a secret. */
function withoutSecretLines(): (problem: ConfigProblem) => ConfigProblem {
  // Cached, because one line may be the whole file and have thousands of problems.
  const verdicts = new Map<string, boolean>();
  return function hide(problem: ConfigProblem): ConfigProblem {
    const { source, related, ...rest } = problem;
    const shown = related === undefined ? rest : { ...rest, related: hide(related) };
    if (source === undefined) return shown;
    const hidden = verdicts.get(source) ?? mayHoldSecret(source);
    verdicts.set(source, hidden);
    return hidden ? shown : { ...shown, source };
  };
}

/** Compares problems by position; those without a position come last. */
function byPlace(a: ConfigProblem, b: ConfigProblem): number {
  const line = (a.line ?? Infinity) - (b.line ?? Infinity);
  return Number.isNaN(line) ? 0 : line || (a.column ?? 0) - (b.column ?? 0);
}
