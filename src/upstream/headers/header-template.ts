import type { HeaderValues } from "../../core/route/header-modifier.ts";
import { claimValue, fieldValue } from "./identity-headers.ts";

/** The request values that a header can contain, by the word in `${…}`. */
const REFERENCES: Readonly<Record<string, (values: HeaderValues) => string | undefined>> = {
  subject: ({ identity }) => identity && fieldValue(identity.subject),
  request_id: ({ request }) => request.requestId,
  client: ({ request }) => request.client,
};

const CLAIM = /^claim:(.+)$/;
const REFERENCE = /\$\{([^{}]*)\}/g;

type Part = string | ((values: HeaderValues) => string | undefined);

/** A header value with references to the request, parsed once. */
export interface HeaderTemplate {
  /** @returns undefined if a value that it refers to does not exist: then the header is omitted. */
  render(values: HeaderValues): string | undefined;
  /** Whether it has no references. */
  readonly fixed: boolean;
}

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

/** Parses a value. References that `isRequestReference` does not know are literal. */
export function headerTemplate(text: string): HeaderTemplate {
  const parts: Part[] = [];
  let end = 0;
  for (const { 0: all, 1: word = "", index } of text.matchAll(REFERENCE)) {
    const reference = referenceTo(word);
    if (reference === undefined) continue;
    if (index > end) parts.push(text.slice(end, index));
    parts.push(reference);
    end = index + all.length;
  }
  if (end === 0) return { render: () => text, fixed: true };
  if (end < text.length) parts.push(text.slice(end));
  return { render: (values) => joined(parts, values), fixed: false };
}

function joined(parts: readonly Part[], values: HeaderValues): string | undefined {
  let text = "";
  for (const part of parts) {
    const piece = typeof part === "string" ? part : part(values);
    if (piece === undefined) return undefined;
    text += piece;
  }
  return text;
}
