import type { Finding } from "../../soak/report/finding.ts";

/** The properties that did not hold. */
export function failures(findings: readonly Finding[]): readonly string[] {
  return findings.filter(({ verdict }) => verdict === "FAIL").map(({ property }) => property);
}
