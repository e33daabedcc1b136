import { dirname, isAbsolute, resolve } from "node:path";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import type { FileContent } from "../lib/files/file-content.ts";
import {
  parsePositionedYaml,
  type PositionedYaml,
  type YamlPath,
} from "../lib/files/positioned-yaml.ts";
import { describePermissions } from "../lib/files/private-file.ts";
import { readFailure, readRegularFileSync } from "../lib/files/regular-file.ts";
import { pathName, type PathProblem } from "./path-problem.ts";
import { interpolate } from "./interpolation.ts";
import { environmentOverlays, flagOverlays, type Overlay, withOverlays } from "./overlays.ts";
import type { Configuration } from "./schema/configuration-schema.ts";
import { valueAt } from "./schema/untyped.ts";
import { mayHoldSecret } from "./effective/secret-lines.ts";
import { validate } from "./validate.ts";

export interface ConfigurationSources {
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The values of flags, by dotted path: `{ "server.listen": "127.0.0.1:0" }`. */
  readonly overrides: Readonly<Record<string, string>>;
}

export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** The files that it was read from, including those of every `${file:…}`, with their fingerprints. */
  readonly files: ReadonlyMap<string, string>;
  /** Adds the position in the file to a problem that is found later. */
  problem(problem: PathProblem): ConfigProblem;
  /** The merged value of all sources in the syntax of the file, without defaults. */
  readonly written: unknown;
  /** Returns the source of the value at a path, or undefined if none is written. */
  sourceOf(path: YamlPath): ValueSource | undefined;
}

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
): LoadedConfiguration {
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
  const raw = withOverlays(yaml.value, overlays);
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
  if (validation.configuration === undefined || problems.length > 0) {
    throw new ConfigError(problems.toSorted(byPlace));
  }
  const { configuration } = validation;
  const files = new Map([[file, text.print], ...interpolated.files]);
  return {
    configuration,
    files,
    problem,
    written,
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
