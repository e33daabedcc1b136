/** The result of one check of the doctor. */
export interface Finding {
  readonly result: "good" | "warning" | "bad" | "skipped";
  /** What was checked and its state, in one line. */
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
