import { isDeepStrictEqual } from "node:util";
import { Document, isCollection, isScalar } from "yaml";
import { z } from "zod";
import type { YamlPath } from "../lib/files/positioned-yaml.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";
import { DURATIONS } from "./fields.ts";
import { configurationSchema } from "./configuration.ts";
import { layersOf, namesIn, type Part, partsAt } from "./schema-parts.ts";
import type { LoadedConfiguration } from "./load.ts";
import { printable } from "../lib/text/printable.ts";
import { formatDuration } from "../lib/text/duration.ts";
import { MASKED, maskSecrets } from "./render.ts";
import { pathName, valueAt } from "./written.ts";
import { mentionsSecret, namesSecret } from "../observe/log/redaction.ts";
import { isFixedValue } from "../upstream/headers/header-changes.ts";
import { isHeaderValue } from "./interpolation.ts";
import { ITEM_NAMES, restartSections } from "./changes.ts";
import { fingerprint } from "../lib/files/regular-file.ts";

/** One value of the effective configuration: a scalar, or a list of scalars. */
interface EffectiveValue {
  readonly path: YamlPath;
  /** As written in a file, with secrets masked. */
  readonly value: unknown;
  /** `default`, or the source of the value. */
  readonly origin: string;
}

export interface Effective {
  /** The whole configuration in the syntax of the file, including defaults. */
  readonly value: unknown;
  /** In the order of the schema. */
  readonly values: readonly EffectiveValue[];
}

const DEFAULT = "default";

/** The name in a reference, and its default. Its end is optional, so that text without one takes linear time. */
const REFERENCE = /\$\{([^}:]*)(:-)?([^}]*)\}?/g;

/** Returns the effective configuration with the origin of each value, without anything that may be secret. */
export function effectiveConfiguration(loaded: LoadedConfiguration): Effective {
  const root = loaded.written ?? {};
  const { routes } = loaded.configuration;
  const whole = isJsonObject(root) && root["routes"] === undefined ? { ...root, routes } : root;
  const walk = new EffectiveWalk(loaded);
  return { value: walk.through([configurationSchema()], whole, []), values: walk.values };
}

/** Renders the effective configuration as a valid configuration file, with the origin of each value in a comment. */
export function effectiveYaml({ value, values }: Effective): string {
  const document = new Document(value);
  for (const { path, origin } of values) {
    const node = document.getIn(path, true);
    if (isCollection(node)) node.flow = true;
    if (isCollection(node) || isScalar(node)) node.comment = ` ${printable(origin)}`;
  }
  return document.toString({ lineWidth: 0, flowCollectionPadding: true });
}

/** Walks through all written values together with the schema. */
class EffectiveWalk {
  readonly values: EffectiveValue[] = [];
  readonly #loaded: LoadedConfiguration;

  constructor(loaded: LoadedConfiguration) {
    this.#loaded = loaded;
  }

  through(parts: readonly Part[], value: unknown, path: YamlPath): unknown {
    const layers = layersOf(parts, value);
    const below = (key: string | number, inner: unknown): unknown =>
      this.through(partsAt(layers, key), inner, [...path, key]);
    if (Array.isArray(value) && value.some(isJsonObject)) {
      return value.map((entry, index) => below(index, entry));
    }
    if (!isJsonObject(value)) return this.#leaf(layers, value, path);
    const named = keysFor(layers, value).flatMap((key): [string, unknown][] => {
      const inner = Object.hasOwn(value, key)
        ? value[key]
        : this.#preset(partsAt(layers, key), [...path, key]);
      return inner === undefined ? [] : [[key, below(key, inner)]];
    });
    return Object.fromEntries(named);
  }

  #leaf(layers: readonly Part[], value: unknown, path: YamlPath): unknown {
    const shown = Array.isArray(value)
      ? value.map((entry: unknown, index) => this.#shownAt([...path, index], entry))
      : layers.some((each) => z.globalRegistry.get(each)?.["writeOnly"] === true)
        ? this.#secretAt(path)
        : this.#shownAt(path, inItsType(layers, value));
    this.values.push({ path, value: shown, origin: this.#originOf(path, value) });
    return shown;
  }

  /** Returns the text for a key that is always secret: its reference, or a mask. */
  #secretAt(path: YamlPath): string {
    const reference = this.#loaded.sourceOf(path)?.reference;
    return reference === undefined ? MASKED : withoutDefaults(reference);
  }

  /** Returns the value, with secrets masked; a secret from a reference is shown as the reference. */
  #shownAt(path: YamlPath, value: unknown): unknown {
    const reference = this.#loaded.sourceOf(path)?.reference;
    if (reference !== undefined && isSecret(reference)) return withoutDefaults(reference);
    if (typeof value !== "string") return value;
    return isSecretHeader(path, value) ? MASKED : maskSecrets(value);
  }

  #originOf(path: YamlPath, value: unknown): string {
    const source = this.#loaded.sourceOf(path);
    if (source === undefined) return DEFAULT;
    const places = Array.isArray(value) ? value.map((_, index) => [...path, index]) : [path];
    const saidThrough = places
      .flatMap((place) => this.#loaded.sourceOf(place)?.reference ?? [])
      .filter((reference) => !isSecret(reference))
      .map(maskSecrets)
      .join(", ");
    const through = saidThrough === "" ? "" : ` from ${saidThrough}`;
    return `${source.origin}${through}`;
  }

  /** Returns a value that is not written: the default of the schema, or one derived from other values. */
  #preset(parts: readonly Part[], path: YamlPath): unknown {
    const layers = layersOf(parts);
    const preset = layers.find(
      (each) => each instanceof z.ZodDefault || each instanceof z.ZodPrefault,
    );
    if (preset !== undefined) return preset.def.defaultValue;
    const value = valueAt(this.#loaded.configuration, path);
    if (typeof value !== "number") return typeof value === "string" ? value : undefined;
    return layers.some((each) => DURATIONS.has(each)) ? formatDuration(value) : value;
  }
}

/**
 * Returns the keys of the alternative that matches a mapping, in the order of the schema; user-defined names
 * (upstreams) in their own order.
 */
function keysFor(layers: readonly Part[], value: object): readonly string[] {
  const keys = Object.keys(value);
  if (partsAt(layers, "").length > 0) return keys;
  return namesIn(layers).find((names) => keys.every((key) => names.includes(key))) ?? [];
}

/** Converts the text of a variable or flag if the schema expects a number or a boolean. */
function inItsType(layers: readonly Part[], value: unknown): unknown {
  if (typeof value !== "string") return value;
  const isWhole = layers.some((each) => each instanceof z.ZodNumberFormat);
  if (isWhole && /^\d+$/.test(value)) return Number(value);
  const isFlag = layers.some((each) => each instanceof z.ZodBoolean);
  return isFlag && /^(?:true|false)$/.test(value) ? value === "true" : value;
}

function isSecret(reference: string): boolean {
  return [...reference.matchAll(REFERENCE)].some(
    ([, name = ""]) => name === "file" || mentionsSecret(name),
  );
}

/** Whether a route sets a header such as `Authorization` or `X-Api-Key` to this fixed value. */
function isSecretHeader(path: YamlPath, value: string): boolean {
  const name = String(path.at(-1));
  return isHeaderValue(path) && namesSecret(name) && isFixedValue(value);
}

/** Masks the defaults in a reference, which are secrets, too. */
function withoutDefaults(reference: string): string {
  const masked = maskSecrets(reference);
  return masked.replaceAll(REFERENCE, (all, name: string, form: string | undefined, rest: string) =>
    form === undefined || rest === "" ? all : `\${${name}:-${MASKED}}`,
  );
}

/** One value in force, under the name of its path. */
type ValueInForce = Omit<EffectiveValue, "path"> & { readonly key: string };

export interface ConfigurationInForce {
  readonly values: readonly ValueInForce[];
  /** SHA-256 of keys and values, in base64url: equal in all pods with the same configuration, whatever the origins. */
  readonly hash: string;
}

/**
 * Returns what a running process uses: the latest configuration, except for the sections that wait for a restart, which
 * stay as they were at start.
 *
 * @param pending the keys that wait for a restart.
 */
export function inForce(
  start: Effective,
  latest: Effective,
  pending: readonly string[],
): ConfigurationInForce {
  const waiting = restartSections(pending);
  const waits = ({ key }: ValueInForce): boolean =>
    waiting.some((section) => key === section || key.startsWith(`${section}.`));
  const values = [
    ...valuesOf(latest).filter((value) => !waits(value)),
    ...valuesOf(start).filter(waits),
  ];
  const entries = values.map(({ key, value }) => [key, value]);
  return { values, hash: fingerprint(JSON.stringify(entries)) };
}

/** A value before and after; undefined if there was none. Secrets are masked. */
export interface ValueChange {
  readonly key: string;
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Returns the values that differ between two configurations, in the order of the later one. Items of lists go by their names,
 * and of what is new or gone, defaults are left out: a new route is what was written of it.
 */
export function changedValues(
  before: readonly ValueInForce[],
  after: readonly ValueInForce[],
): ValueChange[] {
  const [old, later] = [byItemNames(before), byItemNames(after)];
  const changes = [...later].flatMap(([key, { value, origin }]) => {
    const known = old.get(key);
    if (known === undefined && origin === DEFAULT) return [];
    return isDeepStrictEqual(known?.value, value)
      ? []
      : [{ key, before: known?.value, after: value }];
  });
  const removed = [...old].filter(([key, { origin }]) => !later.has(key) && origin !== DEFAULT);
  return [
    ...changes,
    ...removed.map(([key, { value }]) => ({ key, before: value, after: undefined })),
  ];
}

/** `routes[0]` in front of the rest of a key. */
const ITEM = /^([\w.]+\[\d+\])(.*)$/;

/** Returns the values by their keys, with `routes.orders` for `routes[0]`. */
function byItemNames(values: readonly ValueInForce[]): ReadonlyMap<string, ValueInForce> {
  const names = new Map<string, string>();
  for (const { key, value } of values) {
    const [, item = "", rest = ""] = ITEM.exec(key) ?? [];
    if (ITEM_NAMES.some((name) => rest === `.${name}`) && typeof value === "string") {
      names.set(item, item.replace(/\[\d+\]$/, `.${value}`));
    }
  }
  return new Map(
    values.map((each) => {
      const [, item = "", rest = ""] = ITEM.exec(each.key) ?? [];
      const name = names.get(item);
      return [name === undefined ? each.key : name + rest, each];
    }),
  );
}

function valuesOf({ values }: Effective): ValueInForce[] {
  return values.map(({ path, value, origin }) => ({ key: pathName(path), value, origin }));
}
