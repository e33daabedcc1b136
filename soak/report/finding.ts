/** One property, judged. */
export interface Finding {
  readonly property: string;
  /** What was measured, as text. */
  readonly figure: string;
  /** The limit, as text. */
  readonly limit: string;
  /** `short`: the run was too short to say. */
  readonly verdict: "PASS" | "FAIL" | "short";
  /** The first few failures. */
  readonly examples: readonly string[];
}

/** Creates a finding. */
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
