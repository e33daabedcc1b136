import type { Configuration } from "../../config/configuration.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import { foldedName, keptFields } from "../../lib/http/header-values.ts";
import { claimValue, fieldValue } from "./identity-headers.ts";

/** The data that the values of modified headers can refer to. */
export interface HeaderValues {
  readonly request: Pick<GateRequest, "requestId" | "client">;
  readonly identity: Identity | undefined;
}

/** The request values that a header can contain, by the word in `${…}`. */
const REFERENCES: Readonly<Record<string, (values: HeaderValues) => string | undefined>> = {
  subject: ({ identity }) => identity && fieldValue(identity.subject),
  request_id: ({ request }) => request.requestId,
  client: ({ request }) => request.client,
};

const CLAIM = /^claim:(.+)$/;
const REFERENCE = /\$\{([^{}]*)\}/g;

/** A text, or a reference to the request. */
type Part = string | ((values: HeaderValues) => string | undefined);

/** Whether `${word}` refers to a value of the request. */
export function isRequestReference(word: string): boolean {
  return referenceTo(word) !== undefined;
}

/** The names of the claims that a value refers to. */
export function claimsIn(text: string): string[] {
  return [...text.matchAll(REFERENCE)].flatMap(([, word = ""]) => CLAIM.exec(word)?.[1] ?? []);
}

function referenceTo(word: string): Exclude<Part, string> | undefined {
  const claim = CLAIM.exec(word)?.[1];
  if (claim === undefined) return Object.hasOwn(REFERENCES, word) ? REFERENCES[word] : undefined;
  return ({ identity }) => {
    const value = identity?.claims?.get(claim);
    return value === undefined ? undefined : claimValue(value);
  };
}

/** Whether a value refers to nothing of the request. */
export function isFixedValue(text: string): boolean {
  return areFixed(partsOf(text));
}

function areFixed(parts: readonly Part[]): boolean {
  return parts.every((part) => typeof part === "string");
}

/** Parses a value. References that `isRequestReference` does not know are literal. */
function partsOf(text: string): readonly Part[] {
  const parts: Part[] = [];
  let end = 0;
  for (const { 0: all, 1: word = "", index } of text.matchAll(REFERENCE)) {
    const reference = referenceTo(word);
    if (reference === undefined) continue;
    parts.push(text.slice(end, index), reference);
    end = index + all.length;
  }
  return [...parts, text.slice(end)];
}

/** @returns undefined if a value that it refers to does not exist: then the header is omitted. */
function joined(parts: readonly Part[], values: HeaderValues): string | undefined {
  let text = "";
  for (const part of parts) {
    const piece = typeof part === "string" ? part : part(values);
    if (piece === undefined) return undefined;
    text += piece;
  }
  return text;
}

type HeaderChanges = NonNullable<Configuration["routes"][number]["requestHeaders"]>;

interface Field {
  readonly name: string;
  /** The name in the form in which some backends compare it: see `foldedName`. */
  readonly folded: string;
  readonly parts: readonly Part[];
}

/**
 * Sets, adds and removes header fields for a route. A header that is set or removed is first deleted in every spelling that a
 * backend could read as the same name, even if a reference has no value, so that clients can never choose it.
 */
export class HeaderModifier {
  readonly #written: readonly Field[];
  readonly #gone: ReadonlySet<string>;

  constructor({ set, add, remove }: HeaderChanges) {
    const replaced = fieldsOf(set);
    this.#written = [...replaced, ...fieldsOf(add)];
    this.#gone = new Set([...replaced.map(({ folded }) => folded), ...remove.map(foldedName)]);
  }

  /** @returns the modified fields. @param fields names and values, alternating. */
  modify(fields: readonly string[], values: HeaderValues): string[] {
    const after = this.#gone.size === 0 ? [...fields] : without(fields, this.#gone);
    write(this.#written, values, after);
    return after;
  }

  /** @returns the fields whose names it neither sets nor removes. */
  untouched(fields: readonly string[]): string[] {
    return without(fields, this.#gone);
  }

  /**
   * Returns the fields that `modify` would set or add, for a response of Sallyport itself. Leaves out names that are in
   * `present`, so that the response keeps its own fields.
   *
   * @param present names and values, alternating.
   */
  additions(present: readonly string[], values: HeaderValues): string[] {
    const names = new Set(present.filter((_, at) => at % 2 === 0).map(foldedName));
    const added: string[] = [];
    write(
      this.#written.filter(({ folded }) => !names.has(folded)),
      values,
      added,
    );
    return added;
  }

  /** Whether the value for this name comes from the configuration alone, and may be a secret. */
  isFixed(name: string): boolean {
    const folded = foldedName(name);
    return this.#written.some((field) => field.folded === folded && areFixed(field.parts));
  }
}

function fieldsOf(changes: Readonly<Record<string, string>>): Field[] {
  return Object.entries(changes).map(([name, value]) => ({
    name,
    folded: foldedName(name),
    parts: partsOf(value),
  }));
}

function write(fields: readonly Field[], values: HeaderValues, into: string[]): void {
  for (const { name, parts } of fields) {
    const text = joined(parts, values);
    if (text !== undefined) into.push(name, text);
  }
}

function without(fields: readonly string[], names: ReadonlySet<string>): string[] {
  return keptFields(fields, (name) => !names.has(foldedName(name)));
}
