import { resolve } from "node:path";
import { type FileContent, readFailure } from "../lib/files/regular-file.ts";
import type { PathProblem } from "./written.ts";
import type { YamlPath } from "../lib/files/positioned-yaml.ts";
import { isRequestValue } from "../policy/remote/request-template.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";
import { isRequestReference } from "../upstream/headers/header-changes.ts";

export interface InterpolationContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The base of relative paths. */
  readonly directory: string;
  /** Reads the file of a `${file:…}`; throws as `readRegularFileSync` does. */
  readonly read: (path: string) => FileContent;
}

interface Interpolated {
  readonly value: unknown;
  /**
   * Paths of scalars that consist of one reference. Their values are text even if a number or a boolean is expected.
   */
  readonly whole: readonly YamlPath[];
  readonly problems: readonly PathProblem[];
  /** The files of all `${file:…}` that could be read, with their fingerprints. */
  readonly files: ReadonlyMap<string, string>;
}

const REFERENCE = /\$\{([^}]*)(\}?)/g;

const WHOLE = /^\$\{[^}]*\}$/;

const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)(?::([-?])([^${]*))?$/;

/**
 * Resolves `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and `${file:path}` in the scalars of a parsed value;
 * references can therefore never add keys. As in a shell, the forms with `:` treat an empty variable as unset. Results
 * are not resolved again. A `$` without `{` is literal.
 */
export function interpolate(value: unknown, context: InterpolationContext): Interpolated {
  const whole: YamlPath[] = [];
  const problems: PathProblem[] = [];
  const files = new Map<string, string>();

  const walk = (node: unknown, path: YamlPath): unknown => {
    if (typeof node === "string") {
      if (WHOLE.test(node)) whole.push(path);
      const perRequest = isHeaderValue(path);
      return node.replace(REFERENCE, (all, reference: string, end: string) => {
        if (perRequest && end !== "" && isRequestReference(reference)) return all;
        if (isReviewed(path) && end !== "" && isRequestValue(reference)) return all;
        const found = end === "" ? { problem: UNCLEAR } : lookUp(reference, context);
        if ("problem" in found) {
          problems.push({ path, message: found.problem });
          return "";
        }
        if (found.file !== undefined) files.set(found.file, found.print);
        return found.text;
      });
    }
    if (Array.isArray(node)) return node.map((entry, index) => walk(entry, [...path, index]));
    if (!isJsonObject(node)) return node;
    return Object.fromEntries(
      Object.entries(node).map(([key, entry]) => [key, walk(entry, [...path, key])]),
    );
  };
  return { value: walk(value, []), whole, problems, files };
}

/** Whether the path is the value of a header that a route sets or adds. Such values may also refer to the request. */
export function isHeaderValue([section, , key, change, , ...more]: YamlPath): boolean {
  return (
    section === "routes" &&
    (key === "requestHeaders" || key === "responseHeaders") &&
    (change === "set" || change === "add") &&
    more.length === 0
  );
}

/** Whether the path is an attribute of a SubjectAccessReview. Such values may also refer to the request. */
function isReviewed([section, , key, ...more]: YamlPath): boolean {
  return section === "authorization" && key === "resource" && more.length === 1;
}

type Found =
  | { readonly text: string; readonly file?: undefined }
  | { readonly text: string; readonly file: string; readonly print: string }
  | { readonly problem: string };

const UNCLEAR =
  "contains a ${…} that is none of ${NAME}, ${NAME:-default}, ${NAME:?message} and ${file:path}";

function lookUp(reference: string, { env, directory, read }: InterpolationContext): Found {
  if (reference.startsWith("file:"))
    return readText(resolve(directory, reference.slice("file:".length)), read);
  const [, name, form, rest = ""] = VARIABLE.exec(reference) ?? [];
  if (name === undefined) return { problem: UNCLEAR };
  const value = env[name];
  if (value !== undefined && (value !== "" || form === undefined)) return { text: value };
  if (form === "-") return { text: rest };
  const reason = form === "?" && rest !== "" ? `: ${rest}` : "";
  return { problem: `needs the environment variable ${name}, which is not set${reason}` };
}

const UNREADABLE = "names a file in ${file:…} that cannot be read";

/** Reads a file without its final line break, which does not belong to the secret. */
function readText(file: string, read: InterpolationContext["read"]): Found {
  try {
    const { text, fingerprint: print } = read(file);
    return { text: text.replace(/\r?\n$/, ""), file, print };
  } catch (error) {
    return { problem: `${UNREADABLE} (${readFailure(error)})` };
  }
}
