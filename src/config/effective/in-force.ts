import { isDeepStrictEqual } from "node:util";
import { fingerprint } from "../../lib/files/file-content.ts";
import { restartSections } from "./changes.ts";
import type { Effective } from "./effective.ts";
import { pathName } from "../path-problem.ts";

/** One value in force. */
export interface ValueInForce {
  readonly key: string;
  /** As written in a file, with secrets masked. */
  readonly value: unknown;
  /** `default`, or the source of the value. */
  readonly origin: string;
}

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

/** Returns the values that differ between two configurations, in the order of the later one. */
export function changedValues(
  before: readonly ValueInForce[],
  after: readonly ValueInForce[],
): ValueChange[] {
  const old = new Map(before.map(({ key, value }) => [key, value]));
  const changes = after.flatMap(({ key, value }) =>
    isDeepStrictEqual(old.get(key), value) ? [] : [{ key, before: old.get(key), after: value }],
  );
  const kept = new Set(after.map(({ key }) => key));
  const removed = before.filter(({ key }) => !kept.has(key));
  return [
    ...changes,
    ...removed.map(({ key, value }) => ({ key, before: value, after: undefined })),
  ];
}

function valuesOf({ values }: Effective): ValueInForce[] {
  return values.map(({ path, value, origin }) => ({ key: pathName(path), value, origin }));
}
