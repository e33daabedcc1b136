import { resolve } from "node:path";
import { fingerprint } from "../lib/fingerprint.ts";
import type { YamlPath } from "../lib/positioned-yaml.ts";
import { readRegularFileSync, whyUnread } from "../lib/regular-file.ts";
import { isJsonObject } from "../lib/strict-json.ts";
import type { Fault } from "./fault.ts";

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where relative paths start. */
  readonly directory: string;
}

interface Interpolated {
  readonly value: unknown;
  /** Where a whole scalar was a reference: it is text, though a number or a boolean may be wanted. */
  readonly whole: readonly YamlPath[];
  readonly faults: readonly Fault[];
  /** Every file of a `${file:…}` that could be read, with the fingerprint of what it held. */
  readonly files: ReadonlyMap<string, string>;
}

const REFERENCE = /\$\{([^}]*)(\}?)/g;
const WHOLE = /^\$\{[^}]*\}$/;
const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)(?::([-?])([^${]*))?$/;

/**
 * Resolves `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `${file:path}` in the scalars of a value that was
 * parsed already, so that what they stand for can never add keys. As in a shell, the forms with `:` take an empty
 * variable for an unset one. The result of a reference is not looked at again. A `$` without `{` means itself.
 */
export function interpolate(value: unknown, surroundings: Surroundings): Interpolated {
  const whole: YamlPath[] = [];
  const faults: Fault[] = [];
  const files = new Map<string, string>();

  const walk = (node: unknown, path: YamlPath): unknown => {
    if (typeof node === "string") {
      if (WHOLE.test(node)) whole.push(path);
      return node.replace(REFERENCE, (_all, reference: string, end: string) => {
        const found = end === "" ? { fault: UNCLEAR } : lookUp(reference, surroundings);
        if ("fault" in found) {
          faults.push({ path, message: found.fault });
          return "";
        }
        if (found.file !== undefined) files.set(found.file, fingerprint(found.content));
        return found.text;
      });
    }
    if (Array.isArray(node)) return node.map((entry, index) => walk(entry, [...path, index]));
    if (!isJsonObject(node)) return node;
    return Object.fromEntries(
      Object.entries(node).map(([key, entry]) => [key, walk(entry, [...path, key])]),
    );
  };
  return { value: walk(value, []), whole, faults, files };
}

type Found =
  | { readonly text: string; readonly file?: undefined }
  | { readonly text: string; readonly file: string; readonly content: Buffer }
  | { readonly fault: string };

const UNCLEAR =
  "holds a ${…} that is none of ${NAME}, ${NAME:-default}, ${NAME:?message} and ${file:path}";

function lookUp(reference: string, { env, directory }: Surroundings): Found {
  if (reference.startsWith("file:"))
    return readText(resolve(directory, reference.slice("file:".length)));
  const [, name, form, rest = ""] = VARIABLE.exec(reference) ?? [];
  if (name === undefined) return { fault: UNCLEAR };
  const value = env[name];
  if (value !== undefined && (value !== "" || form === undefined)) return { text: value };
  if (form === "-") return { text: rest };
  const reason = form === "?" && rest !== "" ? `: ${rest}` : "";
  return { fault: `needs the environment variable ${name}, which is not set${reason}` };
}

const UNREADABLE = "names a file in ${file:…} that cannot be read";

/** A secret file usually ends with a line break that does not belong to the secret. */
function readText(file: string): Found {
  try {
    const content = readRegularFileSync(file);
    return { text: content.toString("utf8").replace(/\r?\n$/, ""), file, content };
  } catch (error) {
    return { fault: `${UNREADABLE} (${whyUnread(error)})` };
  }
}
