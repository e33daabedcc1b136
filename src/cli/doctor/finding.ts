import { codeOrMessage } from "../../lib/error-code.ts";

/** What one look of the doctor has found. */
export interface Finding {
  readonly result: "good" | "warning" | "bad" | "skipped";
  /** What was looked at and how it is, in one line. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

export interface FindingGroup {
  readonly name: string;
  readonly findings: readonly Finding[];
}

export function good(message: string): Finding {
  return { result: "good", message };
}

export function bad(message: string, hint?: string): Finding {
  return { result: "bad", message, ...(hint === undefined ? {} : { hint }) };
}

export function warning(message: string, hint?: string): Finding {
  return { result: "warning", message, ...(hint === undefined ? {} : { hint }) };
}

export function skipped(message: string): Finding {
  return { result: "skipped", message };
}

/** The system's code, or the words of an error. */
export function codeOf(error: unknown): string {
  const late = error instanceof Error && ["TimeoutError", "AbortError"].includes(error.name);
  return late ? "no answer in time" : codeOrMessage(error);
}
