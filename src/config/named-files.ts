import { accessSync, constants, statSync } from "node:fs";
import { z } from "zod";
import type { YamlPath } from "../lib/files/positioned-yaml.ts";
import { describePermissions } from "../lib/files/private-file.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";
import { FILE_USES, type FileUse } from "./schema/fields.ts";
import { type Configuration, configurationSchema } from "./schema/configuration-schema.ts";

/** A file or directory that a key of the configuration names. */
export interface NamedFile {
  readonly key: YamlPath;
  /** Absolute. */
  readonly path: string;
  readonly use: FileUse;
}

/** Returns all files that a configuration names in `filePath` fields, in the order of the schema. */
export function namedFiles(configuration: Configuration): NamedFile[] {
  return namedBelow(configurationSchema(), configuration, []);
}

/** Walks a part of the schema in parallel with its value. */
function namedBelow(part: z.core.$ZodType, value: unknown, key: YamlPath): NamedFile[] {
  const use = FILE_USES.get(part);
  if (use !== undefined) return typeof value === "string" ? [{ key, path: value, use }] : [];
  if (part instanceof z.ZodUnion) {
    const options = part.options.filter((option) => isOfKind(option, value));
    return options.flatMap((option) => namedBelow(option, value, key));
  }
  if (part instanceof z.ZodPipe) return namedBelow(part.in, value, key);
  if (
    part instanceof z.ZodOptional ||
    part instanceof z.ZodExactOptional ||
    part instanceof z.ZodDefault ||
    part instanceof z.ZodPrefault
  ) {
    return namedBelow(part.unwrap(), value, key);
  }
  if (part instanceof z.ZodArray && Array.isArray(value)) {
    return value.flatMap((entry, index) => namedBelow(part.element, entry, [...key, index]));
  }
  if (!isJsonObject(value)) return [];
  if (part instanceof z.ZodObject) {
    return Object.entries(part.shape).flatMap(([name, field]) =>
      namedBelow(field, value[name], [...key, name]),
    );
  }
  if (part instanceof z.ZodRecord) {
    return Object.entries(value).flatMap(([name, entry]) =>
      namedBelow(part.valueType, entry, [...key, name]),
    );
  }
  return [];
}

/** Reports whether an alternative matches the value, by `kind` if both have one. */
function isOfKind(option: z.core.$ZodType, value: unknown): boolean {
  const kind = option instanceof z.ZodObject ? option.shape["kind"] : undefined;
  if (!(kind instanceof z.ZodLiteral) || !isJsonObject(value)) return true;
  return [...kind.values].some((word) => word === value["kind"]);
}

/** Returns why a named file cannot be read, as a continuation of its key; undefined if it can be read. */
export function accessProblem({ path, use }: Pick<NamedFile, "path" | "use">): string | undefined {
  const { kind } = use;
  const directory = kind === "directory";
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return `names a ${kind} that does not exist: ${path}`;
    if (directory && !stats.isDirectory()) return `does not name a directory: ${path}`;
    if (!directory && !stats.isFile()) return `does not name a regular file: ${path}`;
    accessSync(path, directory ? constants.R_OK | constants.X_OK : constants.R_OK);
    return undefined;
  } catch {
    return `names a ${kind} that cannot be read: ${path} (${describePermissions(path)})`;
  }
}
