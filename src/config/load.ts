import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ConfigError } from "../core/config-problem.ts";
import type { ConfigProblem } from "../core/config-problem.ts";
import { parsePositionedYaml } from "../lib/positioned-yaml.ts";
import type { PositionedYaml, YamlPath } from "../lib/positioned-yaml.ts";
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
  const yaml = parsePositionedYaml(readText(file), file);
  if (yaml.value === undefined) throw new ConfigError(yaml.problems.map(withoutSecrets));

  const interpolated = interpolate(yaml.value, surroundings);
  const fromEnvironment = environmentOverlays(env, interpolated.value);
  const fromFlags = flagOverlays(overrides, interpolated.value);
  const overlays = [...fromEnvironment.overlays, ...fromFlags.overlays];
  const written = withOverlays(interpolated.value, overlays);
  const texts = [...interpolated.whole, ...overlays.map(({ path }) => path)];

  // What is said elsewhere need not be resolved in the file.
  const unresolved = interpolated.faults.filter(
    ({ path }) => overlayAt(overlays, path) === undefined,
  );
  const silent = new Set(unresolved.map(({ path }) => JSON.stringify(path)));
  const verdict = validate(written, texts, surroundings);
  const problem = placing(file, yaml, overlays);
  const problems = [
    ...yaml.problems.map(withoutSecrets),
    ...unresolved.map(problem),
    ...verdict.faults.filter(({ path }) => !silent.has(JSON.stringify(path))).map(problem),
    ...fromEnvironment.problems,
    ...fromFlags.problems,
  ];
  if (verdict.configuration === undefined || problems.length > 0) {
    throw new ConfigError(problems.toSorted(byPlace));
  }
  const { configuration } = verdict;
  return { configuration, problem, written, said: telling(file, yaml, overlays) };
}

function telling(file: string, yaml: PositionedYaml, overlays: readonly Overlay[]) {
  return (path: YamlPath): Said | undefined => {
    const overlay = overlayAt(overlays, path);
    if (overlay !== undefined) return { origin: overlay.origin, reference: undefined };
    const raw = valueAt(yaml.value, path);
    if (raw === undefined) return undefined;
    const reference = typeof raw === "string" && raw.includes("${") ? raw : undefined;
    return { origin: `${file}:${yaml.place(path, "key").line}`, reference };
  };
}

function readText(file: string): string {
  const refuse = (message: string): never => {
    throw new ConfigError([{ file, message }]);
  };
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch (error) {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    return refuse(missing ? "the file does not exist" : "the file cannot be read");
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
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
    return withoutSecrets({ file, ...yaml.place(path, of), ...said });
  };
}

/** The overlay that said what is at a path. */
function overlayAt(overlays: readonly Overlay[], path: YamlPath): Overlay | undefined {
  return overlays.findLast((overlay) =>
    overlay.path.every((segment, index) => segment === path[index]),
  );
}

function withoutSecrets(problem: ConfigProblem): ConfigProblem {
  const { source, ...rest } = problem;
  return source === undefined || mayHoldSecret(source) ? rest : problem;
}

/** What has no place in the file comes last. */
function byPlace(a: ConfigProblem, b: ConfigProblem): number {
  const line = (a.line ?? Infinity) - (b.line ?? Infinity);
  return Number.isNaN(line) ? 0 : line || (a.column ?? 0) - (b.column ?? 0);
}
