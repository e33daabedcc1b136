import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";

const DEPLOY = join(import.meta.dirname, "../../../deploy");

/** `server.limits` of a configuration, as it is written. */
export type Limits = Readonly<Record<string, unknown>>;

/**
 * The `server.limits` that the plain manifests, the Kustomize component and the Helm chart ship.
 * @throws Error when they differ: then one of them is not measured.
 */
export function shippedLimits(): Limits {
  const plain = yaml("kubernetes/plain/config-map.yaml");
  const shipped = [
    limitsOf(parse(String(at(plain, "data", "config.yaml")))),
    limitsOf(yaml("kubernetes/sidecar/config.yaml")),
    limitsOf(at(yaml("helm/sallyport/values.yaml"), "config")),
  ];
  const [first = {}, ...others] = shipped;
  if (others.every((limits) => isDeepStrictEqual(limits, first))) return first;
  throw new Error(`the shipped limits differ: ${JSON.stringify(shipped)}`);
}

function yaml(name: string): unknown {
  return parse(readFileSync(join(DEPLOY, name), "utf8"));
}

function limitsOf(configuration: unknown): Limits {
  return Object.fromEntries(Object.entries(at(configuration, "server", "limits") ?? {}));
}

/** The value below these names; undefined where there is none. */
function at(value: unknown, ...names: readonly string[]): unknown {
  let found = value;
  for (const name of names) {
    if (typeof found !== "object" || found === null) return undefined;
    found = new Map<string, unknown>(Object.entries(found)).get(name);
  }
  return found;
}
