import type { GateRequest } from "../../core/request/gate-request.ts";
import { fieldPairs, foldedName } from "../../lib/http/header-values.ts";

/**
 * References to values of a request, for the questions to another server about it: `${query:namespace}`,
 * `${header:X-Namespace}`. A parameter or header that occurs several times has several values, and the caller must be
 * allowed all of them, since it is unknown which one the backend reads.
 */

const REFERENCE = /\$\{(query|header):([^{}]+)\}/g;
/** The maximum number of combinations of values, because a client chooses how many there are. */
const MAX_COMBINATIONS = 16;
const LONGEST_VALUE = 253;
const CONTROL = /\p{Cc}/u;

/** Whether `${word}` refers to a value of the request. */
export function isRequestValue(word: string): boolean {
  return /^(?:query|header):[^{}\s]+$/.test(word);
}

/**
 * Parses texts with references.
 *
 * @returns a function that returns the texts for every combination of values of a request; undefined if a value is missing
 * or invalid, or if there are too many.
 */
export function requestTemplate(texts: Readonly<Record<string, string>>) {
  const found = Object.values(texts).flatMap((text) => [...text.matchAll(REFERENCE)]);
  /** Without duplicates. */
  const references = new Map(found.map(([all, kind = "", name = ""]) => [all, { kind, name }]));
  return (request: GateRequest): Record<string, string>[] | undefined => {
    let combinations: Record<string, string>[] = [texts];
    for (const [all, { kind, name }] of references) {
      const values = kind === "query" ? queryValues(request, name) : headerValues(request, name);
      if (!areUsable(values)) return undefined;
      combinations = combinations.flatMap((each) =>
        [...new Set(values)].map((value) => replaced(each, all, value)),
      );
      if (combinations.length > MAX_COMBINATIONS) return undefined;
    }
    return combinations;
  };
}

function areUsable(values: readonly string[] | undefined): values is readonly string[] {
  return (
    values !== undefined &&
    values.length > 0 &&
    values.length <= MAX_COMBINATIONS &&
    values.every((value) => value !== "" && value.length <= LONGEST_VALUE && !CONTROL.test(value))
  );
}

function replaced(
  texts: Record<string, string>,
  all: string,
  value: string,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).map(([key, text]) => [key, text.replaceAll(all, () => value)]),
  );
}

/** Returns the values of a parameter; undefined if the query contains `;`, which some servers treat as a separator. */
function queryValues({ query }: GateRequest, name: string): string[] | undefined {
  if (query.includes(";")) return undefined;
  return new URLSearchParams(query).getAll(name);
}

/** Returns the values of a header, in every spelling of the name that a backend could treat as the same. */
function headerValues({ rawHeaders }: GateRequest, name: string): string[] {
  const wanted = foldedName(name);
  const sent = fieldPairs(rawHeaders).filter(([name]) => foldedName(name) === wanted);
  return sent.map(([, value]) => value);
}
