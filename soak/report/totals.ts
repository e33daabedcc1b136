import type { Scrape } from "../../test/support/scrape.ts";
import type { LogBook } from "../accounts/log-book.ts";
import { type Finding, finding } from "./finding.ts";

/** Judges whether the metrics match the log, which is compared with the clients elsewhere. */
export function judgeTotals(book: LogBook, metrics: Scrape): readonly Finding[] {
  const counted = new Map<string, number>();
  for (const name of metrics.series) {
    const labels = /^sallyport_http_requests_total\{(.*)\}$/.exec(name)?.[1];
    if (labels === undefined) continue;
    const { route, method, code } = labelsIn(labels);
    counted.set(`${route} ${method} ${code}`, metrics.value(name) ?? 0);
  }
  const logged = book.requests.toJSON();
  const differences = [...new Set([...counted.keys(), ...Object.keys(logged)])]
    .filter((row) => (counted.get(row) ?? 0) !== (logged[row] ?? 0))
    .map((row) => `${row}: counted ${counted.get(row) ?? 0}, logged ${logged[row] ?? 0}`);
  const total = metrics.sum("sallyport_http_requests_total");
  const logins = book.requests.of("authenticate POST 200");
  return [
    finding(
      "requests counted, by route, method and code",
      differences.length === 0,
      total,
      book.requests.total,
      differences.slice(0, 10),
    ),
    same("logins that succeeded", metrics.sum("sallyport_logins_total", '"success"'), logins),
    same("tokens issued", metrics.sum("sallyport_tokens_issued_total"), logins),
    same(
      "answers of backends",
      metrics.sum("sallyport_upstream_requests_total"),
      book.fromUpstream,
    ),
    ...["allowed", "denied", "skipped"].map((result) =>
      same(
        `decisions: ${result}`,
        metrics.sum("sallyport_auth_decisions_total", `result="${result}"`),
        book.decisions.of(result),
      ),
    ),
  ];
}

function same(property: string, counted: number, logged: number): Finding {
  return finding(`${property}, counted`, counted === logged, counted, logged);
}

function labelsIn(text: string): Partial<Record<string, string>> {
  return Object.fromEntries(
    [...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]),
  );
}
