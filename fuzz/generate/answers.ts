import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { usualFields } from "./pieces.ts";
import { manyFields, run } from "./repeated.ts";

/** Answer fields that some hop interprets, and one that none does. */
const NAMES = [
  ...["Link", "Link", "Set-Cookie", "Connection", "Keep-Alive", "Content-Disposition", "Vary"],
  ...["Content-Type", "Location", "WWW-Authenticate", "ETag", "Date", "Via", "Upgrade", "X-A"],
];
/** No parser continues after an interim answer that ends the connection. */
const INTERIM_NAMES = NAMES.filter((name) => name !== "Connection");
/** The limits of a head; the subject accepts 64 KiB. */
const MOST_BYTES = 30_000;
const MOST_FIELDS = 400;
/** The number of interim answers; the subject accepts 16. */
const MOST_INTERIM = 6;

/** An almost valid link: a repeated parameter, and an end that fits none of them. */
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

/** Generates fields with up to this many bytes in total. */
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

/** Generates answers of a backend, with interim answers before them, and many repetitions. */
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
