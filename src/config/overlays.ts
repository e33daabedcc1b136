import { nearest } from "../lib/text/nearest.ts";
import { parsePositionedYaml } from "../lib/files/positioned-yaml.ts";
import type { ConfigProblem } from "../core/config-problem.ts";
import { type KnownKeys, knownKeys } from "./schema/json-schema.ts";
import { mappingAt, replacedAt, valueAt } from "./schema/untyped.ts";

/** A value that does not come from the file, with a description of its origin. */
export interface Overlay {
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
 * Reads variables such as `SALLYPORT_SERVER__LISTEN`: `__` separates keys, case is ignored.
 *
 * @param written the value of the file; variables may use the names that it defines (those of upstreams).
 */
export function environmentOverlays(
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
export function flagOverlays(flags: Readonly<Record<string, string>>, written: unknown): Overlays {
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
  // Collecting the keys of the schema takes 25 ms, and usually there are no entries.
  if (entries.length === 0) return { overlays: [], problems: [] };
  const known = knownKeys();
  for (const { segments, value, origin } of entries) {
    const path = pathOf(segments, known, written);
    const parsed = valueOf(value);
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

/** @returns a copy of the value with the overlays applied. */
export function withOverlays(value: unknown, overlays: readonly Overlay[]): unknown {
  return overlays.reduce((whole, overlay) => replacedAt(whole, overlay.path, overlay.value), value);
}
