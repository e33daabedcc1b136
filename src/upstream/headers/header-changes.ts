import type { HeaderModifier, HeaderValues } from "../../core/route/header-modifier.ts";
import { foldedName } from "../../lib/http/folded-name.ts";
import { type HeaderTemplate, headerTemplate } from "./header-template.ts";

/** The header changes of a route, as configured. */
export interface HeaderChanges {
  /** Replaces all fields of the name. */
  readonly set: Readonly<Record<string, string>>;
  /** Adds a field. */
  readonly add: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

interface Field {
  readonly name: string;
  /** The name in the form in which some backends compare it: see `foldedName`. */
  readonly folded: string;
  readonly value: HeaderTemplate;
}

/**
 * Prepares the changes of a route. A header that is set or removed is first deleted in every spelling that a
 * backend could read as the same name, even if a reference has no value, so that clients can never choose it.
 */
export function headerModifier({ set, add, remove }: HeaderChanges): HeaderModifier {
  const replaced = fieldsOf(set);
  const written = [...replaced, ...fieldsOf(add)];
  const gone = new Set([...replaced.map(({ folded }) => folded), ...remove.map(foldedName)]);
  return {
    modify(before, values) {
      const after = gone.size === 0 ? [...before] : without(before, gone);
      write(written, values, after);
      return after;
    },
    untouched: (fields) => without(fields, gone),
    additions(present, values) {
      const names = new Set(present.filter((_, at) => at % 2 === 0).map(foldedName));
      const added: string[] = [];
      write(
        written.filter(({ folded }) => !names.has(folded)),
        values,
        added,
      );
      return added;
    },
    isFixed(name) {
      const folded = foldedName(name);
      return written.some((field) => field.folded === folded && field.value.fixed);
    },
  };
}

function fieldsOf(changes: Readonly<Record<string, string>>): Field[] {
  return Object.entries(changes).map(([name, value]) => ({
    name,
    folded: foldedName(name),
    value: headerTemplate(value),
  }));
}

function write(fields: readonly Field[], values: HeaderValues, into: string[]): void {
  for (const { name, value } of fields) {
    const text = value.render(values);
    if (text !== undefined) into.push(name, text);
  }
}

function without(fields: readonly string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? "";
    if (!names.has(foldedName(name))) kept.push(name, fields[i + 1] ?? "");
  }
  return kept;
}
