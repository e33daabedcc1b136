import { isDeepStrictEqual } from "node:util";
import { pathName, type ReadAtStart, valueAt } from "./written.ts";
import { type Configuration, SECTIONS } from "./configuration.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";

const AT_START: readonly ReadAtStart[] = SECTIONS.flatMap(({ atStart = [] }) => atStart);

/** Returns the keys whose values differ, as deep as possible: `server.timeouts.header`, `routes.orders.path`. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  return differences(before, after, []).map(pathName);
}

/** Returns those of the keys that take effect only after a restart. */
export function restartKeys(keys: readonly string[]): string[] {
  return keys.filter((key) => AT_START.some((start) => overlap(key, start.key)));
}

/** Returns the sections that keep their values from the start while these keys wait for a restart. */
export function restartSections(pending: readonly string[]): string[] {
  return AT_START.filter((start) => pending.some((key) => overlap(key, start.key))).flatMap(
    ({ key, keeps = key }) => (keeps === false ? [] : [keeps]),
  );
}

/** Whether one key is the other, or is below it. Adding or removing a section changes all of its keys. */
function overlap(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one);
}

function isWithin(key: string, whole: string): boolean {
  return key === whole || key.startsWith(`${whole}.`) || key.startsWith(`${whole}[`);
}

/**
 * Returns the configuration that a running process can put in force. Keys that need a restart keep the values in force,
 * and the files that they name are still followed, for example the certificate that is served until the restart.
 */
export function withoutRestart(written: Configuration, inForce: Configuration): Configuration {
  const whole = structuredClone(written);
  for (const { key, keeps = key } of AT_START) {
    const [before, after] = [inForce, whole].map((each) => valueAt(each, key.split(".")));
    if (keeps !== false && !isDeepStrictEqual(before, after))
      keep(whole, inForce, keeps.split("."));
  }
  return whole;
}

/** Sets the value at a path to that in force; if a section on the way is off in one, all of it. */
function keep(section: unknown, inForce: unknown, [key = "", ...rest]: readonly string[]): void {
  if (!isJsonObject(section)) return;
  const before = valueAt(inForce, [key]);
  if (before === undefined) Reflect.deleteProperty(section, key);
  else if (rest.length > 0 && isJsonObject(before) && isJsonObject(section[key])) {
    keep(section[key], before, rest);
  } else section[key] = before;
}

type Path = readonly (string | number)[];

/** The keys that name an item of a list, as routes and trusted issuers have one. */
export const ITEM_NAMES = ["name", "issuer"] as const;

/** Returns the items by their names, so that a new item changes no other; undefined if some have none. */
function itemsByName(list: readonly unknown[]): Readonly<Record<string, unknown>> | undefined {
  const names = list.map((item) => {
    const named = isJsonObject(item) ? ITEM_NAMES.map((key) => item[key]) : [];
    return named.find((name) => typeof name === "string");
  });
  const isNamed = (name: unknown): name is string => typeof name === "string";
  if (!names.every(isNamed) || new Set(names).size < names.length) return undefined;
  return Object.fromEntries(names.map((name, index) => [name, list[index]]));
}

function differences(before: unknown, after: unknown, path: Path): Path[] {
  if (Object.is(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) {
    const [named, namedAfter] = [itemsByName(before), itemsByName(after)];
    if (named && namedAfter) return differences(named, namedAfter, path);
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) =>
      differences(before[index], after[index], [...path, index]),
    ).flat();
  }
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) => differences(before[name], after[name], [...path, name]));
  }
  return [path];
}
