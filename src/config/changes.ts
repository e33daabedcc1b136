import { isJsonObject } from "../lib/strict-json.ts";
import { pathName } from "./fault.ts";
import type { Configuration } from "./schema.ts";

/** What is read once, when the process starts. */
const AT_START = [
  "server.listen",
  "server.workers",
  "server.limits.headerBytes",
  "server.tls.mode",
  "server.tls.clientCertificates.mode",
  "admin.listen",
  "admin.allow",
  "log",
];

/** The keys whose values differ, each as deep as possible: `server.timeouts.header`, `routes[1].path`. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  return differences(before, after, []).map(pathName);
}

/** Of these keys the ones that a running process cannot follow. */
export function startKeys(keys: readonly string[]): string[] {
  return keys.filter(
    (key) =>
      key === "admin" || // to or from `off`
      AT_START.some(
        (start) => key === start || key.startsWith(`${start}.`) || key.startsWith(`${start}[`),
      ),
  );
}

type Path = readonly (string | number)[];

function differences(before: unknown, after: unknown, path: Path): Path[] {
  if (Object.is(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) {
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
