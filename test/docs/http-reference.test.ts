/** The tables of status codes and their headers in `docs/reference/http.md` match the responses. */
import { expect, test } from "vitest";
import { type ErrorCode, ERRORS, GateError } from "../../src/core/request/errors.ts";
import { errorAnswer } from "../../src/server/request/write-answer.ts";
import { codesIn, readDocument } from "./markdown.ts";

const reference = readDocument("docs/reference/http.md");
/** Some rows are about several errors with the same status and message. */
const rows = reference
  .rows("word", "status", "message", "when")
  .flatMap((row) => codesIn(row["word"]).map((word) => ({ word, row })));
const headerRows = reference.rows("header", "errors");
const codes = Object.keys(ERRORS) as ErrorCode[];

/** Headers that only some responses with the code have; the document names them without a value. */
const AT_TIMES: Partial<Record<ErrorCode, string[]>> = {
  login_proof: ["DPoP-Nonce"],
  login_throttled: ["Retry-After"],
  method_not_allowed: ["Allow"],
  concurrency_limited: ["Retry-After"],
  rate_limited: ["Retry-After", "RateLimit", "RateLimit-Policy"],
};

test("exactly the existing errors are listed", () => {
  expect(rows.map(({ word }) => word)).toEqual(codes);
  const named = headerRows.flatMap((row) => [...(row["errors"] ?? "").matchAll(/(?<!: )`(\w+)`/g)]);
  const words: readonly string[] = codes;
  expect(named.map(([, word = ""]) => word).filter((word) => !words.includes(word))).toEqual([]);
});

test.each(codes)("%s is listed with its actual response", (code) => {
  const row = rows.find(({ word }) => word === code)?.row;
  const answer = errorAnswer(new GateError(code), 1, "r-1", { realm: "…" });
  const { message } = JSON.parse(String(answer.body)) as { message: string };
  expect(row).toMatchObject({ status: String(answer.status), message });
  expect(documentedHeaders(code, answer.status).toSorted()).toEqual(
    [...new Set([...listedHeaders(answer.headers), ...(AT_TIMES[code] ?? [])])].toSorted(),
  );
  expect(row?.["when"]).not.toBe("");
});

/** Returns what the table of headers says of an error: by its status, or by its name, which a parameter may follow. */
function documentedHeaders(code: ErrorCode, status: number): string[] {
  return headerRows.flatMap((row) => {
    const errors = row["errors"] ?? "";
    const isEvery = new RegExp(`^every .*\\b${status}\\b`).test(errors);
    if (!isEvery && !codesIn(errors).includes(code)) return [];
    const parameter = new RegExp(`\`${code}\`: \`(\\w+)\``).exec(errors)?.[1];
    return codesIn(row["header"]).map((name) => name.replace("error=…", `error=${parameter}`));
  });
}

/** Returns the headers in addition to those of every envelope. */
function listedHeaders(headers: readonly string[]): string[] {
  const listed: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    if (name === "Retry-After") listed.push(name);
    else if (["WWW-Authenticate", "Proxy-Status", "Connection"].includes(name))
      listed.push(`${name}: ${headers[i + 1]}`);
  }
  return listed;
}
