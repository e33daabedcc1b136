/** One property, judged. */
export interface Finding {
  readonly property: string;
  /** What was measured, in words. */
  readonly figure: string;
  /** What it may be. */
  readonly limit: string;
  /** `short`: the run was too short to say. */
  readonly verdict: "PASS" | "FAIL" | "short";
  /** What went wrong, the first few of it. */
  readonly examples: readonly string[];
}

/** @returns the finding that passes when `passed` does. */
export function finding(
  property: string,
  passed: boolean,
  figure: string | number,
  limit: string | number,
  examples: readonly string[] = [],
): Finding {
  const verdict = passed ? "PASS" : "FAIL";
  return { property, figure: String(figure), limit: String(limit), verdict, examples };
}
