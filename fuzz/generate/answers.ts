import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { usualFields } from "./pieces.ts";
import { manyFields, run } from "./repeated.ts";

/** Fields of an answer that somebody on the way reads, and one that nobody does. */
const NAMES = [
  ...["Link", "Link", "Set-Cookie", "Connection", "Keep-Alive", "Content-Disposition", "Vary"],
  ...["Content-Type", "Location", "WWW-Authenticate", "ETag", "Date", "Via", "Upgrade", "X-A"],
];
/** Behind an interim answer that ends the connection no parser reads on. */
const INTERIM_NAMES = NAMES.filter((name) => name !== "Connection");
/** Of a head; the subject takes 64 KiB. */
const MOST_BYTES = 30_000;
const MOST_FIELDS = 400;
/** Of one answer; the subject takes 16. */
const MOST_INTERIM = 6;

/** What is behind a link and is nearly right: a parameter over and over, and an end that fits to none. */
const parameters = fc
  .tuple(
    fc.array(fc.constantFrom(";a", "; a", "; a=b", ';a="b"', '; a=""', ";", " ", ", <y>"), {
      minLength: 1,
      maxLength: 2,
    }),
    fc.integer({ min: 1, max: 60 }),
    fc.constantFrom("", ' "', '"', ";", " x", "="),
  )
  .map(([units, times, end]) => `Link: <x>${units.join("").repeat(times)}${end}`);

/** Of as many bytes as a head of several such parts may have. */
function fields(names: readonly string[], mostBytes: number): fc.Arbitrary<string[]> {
  return fc.oneof(
    parameters.map((link) => [link]),
    manyFields(names, MOST_FIELDS, mostBytes),
    fc
      .tuple(fc.constantFrom(...names), run(mostBytes))
      .map(([name, value]) => [`${name}: ${value}`]),
  );
}

const interim = fc
  .tuple(
    fc.constantFrom("103 Early Hints", "103 Early Hints", "100 Continue", "102 Processing", "110 "),
    fields(INTERIM_NAMES, MOST_BYTES / MOST_INTERIM),
  )
  .map(([status, lines]) => `HTTP/1.1 ${status}\r\n${ended(lines)}\r\n`);

function ended(lines: readonly string[]): string {
  return lines.map((line) => `${line}\r\n`).join("");
}

/** What a backend may say before and in its answer, over and over. */
export function answers(credentials: Credentials): fc.Arbitrary<Case> {
  return fc
    .record({
      method: fc.constantFrom("GET", "GET", "POST", "HEAD"),
      path: fc.constantFrom("/public/a", "/public/b", "/orders/1"),
      usual: usualFields(credentials),
      interims: fc.array(interim, { maxLength: MOST_INTERIM }),
      lines: fc.option(fields(NAMES, MOST_BYTES)),
    })
    .map(({ method, path, usual, interims, lines }) => ({
      rounds: [[`${method} ${path} HTTP/1.1\r\n${ended(usual)}\r\n`]],
      patient: false,
      answer: { interim: interims.join(""), fields: ended(lines ?? []) },
    }));
}
