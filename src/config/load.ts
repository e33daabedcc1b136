import { dirname, resolve } from "node:path";
import { ConfigError } from "../core/config-problem.ts";
import type { ConfigProblem } from "../core/config-problem.ts";
import { fingerprint } from "../lib/fingerprint.ts";
import { parsePositionedYaml } from "../lib/positioned-yaml.ts";
import type { PositionedYaml, YamlPath } from "../lib/positioned-yaml.ts";
import { readRegularFileSync, whyUnread } from "../lib/regular-file.ts";
import { pathName } from "./fault.ts";
import type { Fault } from "./fault.ts";
import { interpolate } from "./interpolation.ts";
import { environmentOverlays, flagOverlays, withOverlays } from "./overlays.ts";
import type { Overlay } from "./overlays.ts";
import type { Configuration } from "./schema.ts";
import { valueAt } from "./schema-faults.ts";
import { mayHoldSecret } from "./secret-lines.ts";
import { validate } from "./validate.ts";

export interface ConfigurationSources {
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What flags say, by dotted path: `{ "server.listen": "127.0.0.1:0" }`. */
  readonly overrides: Readonly<Record<string, string>>;
}

export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** What it was read from: its file and those of every `${file:…}`, each with the fingerprint of what it held. */
  readonly files: ReadonlyMap<string, string>;
  /** Gives a fault that is found later its place in the file. */
  problem(fault: Fault): ConfigProblem;
  /** What all sources say together, in their own spelling and without defaults. */
  readonly written: unknown;
  /** Where what is said at a path came from; undefined where nothing is said. */
  said(path: YamlPath): Said | undefined;
}

interface Said {
  /** `flag server.listen`, `environment variable SALLYPORT_…`, or file and line. */
  readonly origin: string;
  /** The text with references in it, where the value was made from references. */
  readonly reference: string | undefined;
}

/**
 * Reads and validates the configuration. A flag wins over the environment, that over the file, that over the default.
 *
 * @throws ConfigError with everything that is wrong, in the order of the file.
 */
export function loadConfiguration(sources: ConfigurationSources): LoadedConfiguration {
  const { file, env, overrides } = sources;
  const surroundings = { env, directory: dirname(resolve(file)) };
  const text = readText(file);
  const yaml = parsePositionedYaml(text.text, file);
  const withoutSource = withoutSecretLines();
  if (yaml.value === undefined) throw new ConfigError(yaml.problems.map(withoutSource));

  const fromEnvironment = environmentOverlays(env, yaml.value);
  const fromFlags = flagOverlays(overrides, yaml.value);
  const overlays = [...fromEnvironment.overlays, ...fromFlags.overlays];
  // References last: what is said elsewhere need not be resolved in the file.
  const raw = withOverlays(yaml.value, overlays);
  const interpolated = interpolate(raw, surroundings);
  const written = interpolated.value;
  const texts = [...interpolated.whole, ...overlays.map(({ path }) => path)];

  const silent = new Set(interpolated.faults.map(({ path }) => JSON.stringify(path)));
  const verdict = validate(written, texts, surroundings);
  const placed = placing(file, yaml, overlays);
  const problem = (fault: Fault): ConfigProblem => withoutSource(placed(fault));
  const problems = [
    ...yaml.problems.map(withoutSource),
    ...interpolated.faults.map(problem),
    ...verdict.faults.filter(({ path }) => !silent.has(JSON.stringify(path))).map(problem),
    ...fromEnvironment.problems,
    ...fromFlags.problems,
  ];
  if (verdict.configuration === undefined || problems.length > 0) {
    throw new ConfigError(problems.toSorted(byPlace));
  }
  const { configuration } = verdict;
  const files = new Map([[file, text.print], ...interpolated.files]);
  return { configuration, files, problem, written, said: telling(file, yaml, overlays, raw) };
}

/** @param raw what all sources say, before references were resolved. */
function telling(file: string, yaml: PositionedYaml, overlays: readonly Overlay[], raw: unknown) {
  return (path: YamlPath): Said | undefined => {
    const text = valueAt(raw, path);
    if (text === undefined) return undefined;
    const reference = typeof text === "string" && text.includes("${") ? text : undefined;
    const overlay = overlayAt(overlays, path);
    const origin = overlay?.origin ?? `${file}:${yaml.place(path, "key").line}`;
    return { origin, reference };
  };
}

function readText(file: string): { readonly text: string; readonly print: string } {
  const refuse = (message: string): never => {
    throw new ConfigError([{ file, message }]);
  };
  let bytes: Buffer;
  try {
    bytes = readRegularFileSync(file);
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return refuse(
      missing ? "the file does not exist" : `the file cannot be read (${whyUnread(error)})`,
    );
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { text, print: fingerprint(bytes) };
  } catch {
    return refuse("the file is not UTF-8 text");
  }
}

function placing(file: string, yaml: PositionedYaml, overlays: readonly Overlay[]) {
  return (fault: Fault): ConfigProblem => {
    const { path, of = "value", hint } = fault;
    const said = {
      message: `${pathName(path)} ${fault.message}`,
      ...(hint === undefined ? {} : { hint }),
    };
    const overlay = overlayAt(overlays, path);
    if (overlay !== undefined) return { file: overlay.origin, ...said };
    return { file, ...yaml.place(path, of), ...said };
  };
}

/** The overlay that said what is at a path. */
function overlayAt(overlays: readonly Overlay[], path: YamlPath): Overlay | undefined {
  return overlays.findLast((overlay) =>
    overlay.path.every((segment, index) => segment === path[index]),
  );
}

/** Takes the line out of a problem where it may hold a secret. */
function withoutSecretLines(): (problem: ConfigProblem) => ConfigProblem {
  // Of one line there may be thousands of problems, and it may be the whole file.
  const verdicts = new Map<string, boolean>();
  return (problem) => {
    const { source, ...rest } = problem;
    if (source === undefined) return rest;
    const hidden = verdicts.get(source) ?? mayHoldSecret(source);
    verdicts.set(source, hidden);
    return hidden ? rest : problem;
  };
}

/** What has no place in the file comes last. */
function byPlace(a: ConfigProblem, b: ConfigProblem): number {
  const line = (a.line ?? Infinity) - (b.line ?? Infinity);
  return Number.isNaN(line) ? 0 : line || (a.column ?? 0) - (b.column ?? 0);
}
