import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";

const DEPLOY = join(import.meta.dirname, "../../../deploy");

type Section = Readonly<Record<string, unknown>>;

/** The sections of a configuration that bound memory, as written. */
export interface ShippedSettings {
  /** `server.limits` */
  readonly limits: Section;
  readonly login: Section;
}

/**
 * Returns the settings that the plain manifests, the Kustomize component and the Helm chart ship.
 * @throws Error if they differ, since one of them would not be measured.
 */
export function shippedSettings(): ShippedSettings {
  const plain = yaml("kubernetes/plain/config-map.yaml");
  const [first, ...others] = [
    settingsOf(parse(String(at(plain, "data", "config.yaml")))),
    settingsOf(yaml("kubernetes/sidecar/config.yaml")),
    settingsOf(at(yaml("helm/sallyport/values.yaml"), "config")),
  ];
  if (first !== undefined && others.every((other) => isDeepStrictEqual(other, first))) return first;
  throw new Error(`the shipped settings differ: ${JSON.stringify([first, ...others])}`);
}

function yaml(name: string): unknown {
  return parse(readFileSync(join(DEPLOY, name), "utf8"));
}

function settingsOf(configuration: unknown): ShippedSettings {
  return {
    limits: sectionAt(configuration, "server", "limits"),
    login: sectionAt(configuration, "login"),
  };
}

function sectionAt(configuration: unknown, ...names: readonly string[]): Section {
  return Object.fromEntries(Object.entries(at(configuration, ...names) ?? {}));
}

/** Returns the value below these names; undefined if there is none. */
function at(value: unknown, ...names: readonly string[]): unknown {
  let found = value;
  for (const name of names) {
    if (typeof found !== "object" || found === null) return undefined;
    found = new Map<string, unknown>(Object.entries(found)).get(name);
  }
  return found;
}
