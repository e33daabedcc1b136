import type { Ledger } from "../accounts/ledger.ts";
import type { LogBook } from "../accounts/log-book.ts";
import { type Finding, finding } from "./finding.ts";

/** Judges whether every request got its answer, and has exactly one correct log line. */
export function judgeRequests(ledger: Ledger, book: LogBook): readonly Finding[] {
  const { lost, mismatches, repeatedIds, withoutLine, withoutClient } = ledger;
  const strays = withoutClient.map((line) => `${line.requestId} ${line.status} ${line.route}`);
  const silent = withoutLine.map(({ id, kind, got }) => `${kind} ${id} ${JSON.stringify(got)}`);
  const nameless = judgeNameless(ledger);
  return [
    finding("requests lost that need not be", lost.count === 0, lost.count, 0, lost.examples),
    finding("valid requests answered rightly", ledger.right.total > 0, ledger.right.total, "> 0"),
    finding(
      "log tells what the client got",
      mismatches.count === 0,
      mismatches.count,
      0,
      mismatches.examples,
    ),
    finding(
      "requests without a log line",
      silent.length === 0,
      silent.length,
      0,
      silent.slice(0, 10),
    ),
    finding(
      "log lines without a request",
      strays.length === 0,
      strays.length,
      0,
      strays.slice(0, 10),
    ),
    finding(
      "refusals of what is no request",
      nameless === undefined,
      nameless ?? "as sent",
      "as sent",
    ),
    finding(
      "ids that came twice",
      repeatedIds.count === 0,
      repeatedIds.count,
      0,
      repeatedIds.examples,
    ),
    finding(
      "errors in the log or on standard error",
      book.errors.count === 0,
      book.errors.count,
      0,
      book.errors.examples,
    ),
  ];
}

/** Checks that each of these answers has a line. A client that left within its head may have caused one, too. */
function judgeNameless({
  namelessAnswers,
  namelessLines,
  unfinishedHeads,
}: Ledger): string | undefined {
  const answers = namelessAnswers.toJSON();
  const lines = namelessLines.toJSON();
  let spare = unfinishedHeads;
  for (const status of new Set([...Object.keys(answers), ...Object.keys(lines)])) {
    const more = (lines[status] ?? 0) - (answers[status] ?? 0);
    if (more < 0 || (more > 0 && status !== "400")) return `${status}: ${more} lines more`;
    spare -= more;
  }
  return spare < 0 ? `400: ${-spare} lines too many` : undefined;
}
