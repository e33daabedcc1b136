/** The table of status codes in `docs/reference/http.md` matches the responses. */
import { expect, test } from "vitest";
import { type ErrorCode, ERRORS, GateError } from "../../src/core/request/errors.ts";
import { errorAnswer } from "../../src/server/request/write-answer.ts";
import { codeIn, codesIn, readDocument } from "./markdown.ts";

const COLUMNS = ["word", "status", "message", "headers", "when"];
const rows = readDocument("docs/reference/http.md").rows(...COLUMNS);
const codes = Object.keys(ERRORS) as ErrorCode[];

/** Headers that only some responses with the code have; the document names them without a value. */
const AT_TIMES: Partial<Record<ErrorCode, string | string[]>> = {
  login_proof: "DPoP-Nonce",
  login_throttled: "Retry-After",
  method_not_allowed: "Allow",
  concurrency_limited: ["Retry-After"],
  rate_limited: ["Retry-After", "RateLimit", "RateLimit-Policy"],
};

test("exactly the existing errors are listed", () => {
  expect(rows.map((row) => codeIn(row["word"]))).toEqual(codes);
});

test.each(codes)("%s is listed with its actual response", (code) => {
  const row = rows.find((each) => codeIn(each["word"]) === code);
  const { status, headers, body } = errorAnswer(new GateError(code), 1, "r-1", { realm: "…" });
  const { message } = JSON.parse(String(body)) as { message: string };
  expect(row).toMatchObject({ status: String(status), message });
  expect(codesIn(row?.["headers"]).toSorted()).toEqual(
    [...listedHeaders(headers), AT_TIMES[code] ?? []].flat().toSorted(),
  );
  expect(row?.["when"]).not.toBe("");
});

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
