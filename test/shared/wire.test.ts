import { expect, test } from "vitest";
import type { Revocation } from "../../src/core/revocation.ts";
import { readEvent, writeRevocation } from "../../src/shared/wire.ts";
import { writeAttempt } from "../../src/shared/outbox.ts";

const NOW = Date.now();
const DIGEST = "A".repeat(43);
const ATTEMPT = {
  failed: true,
  known: false,
  account: DIGEST,
  pair: DIGEST,
  network: DIGEST,
};
const SUBJECT: Revocation = {
  kind: "subject",
  name: "alice",
  issuer: "sallyport",
  before: NOW,
  until: NOW + 5_000,
};

test("one replica can read what another has written", () => {
  expect(readEvent(writeAttempt(ATTEMPT), NOW)).toEqual({ attempt: ATTEMPT });
  const until = Math.ceil(SUBJECT.until / 1000) * 1000;
  expect(readEvent(writeRevocation(SUBJECT), NOW)).toEqual({ revocation: { ...SUBJECT, until } });
  // A list has whole seconds only; the event read from it is the same.
  expect(writeRevocation({ ...SUBJECT, until })).toBe(writeRevocation(SUBJECT));
});

const revocation = (more: object): string =>
  JSON.stringify({ revocation: { ...SUBJECT, ...more } });

test.each([
  ["no JSON", "{"],
  ["a list", "[]"],
  ["an unknown event", '{"other":1}'],
  ["an attempt without digests", '{"attempt":[1,0,"a","b","c"]}'],
  ["an attempt that is too long", JSON.stringify({ attempt: [1, 0, ...Array(9).fill(DIGEST)] })],
  ["an unknown kind", revocation({ kind: "__proto__" })],
  ["a subject without a name", revocation({ name: "" })],
  ["everything with a name", revocation({ kind: "everything" })],
  ["a name with control characters", revocation({ name: "a\nb" })],
  ["half a character", revocation({ name: "\ud800" })],
  ["a subject without a time", revocation({ before: undefined })],
  ["one that has ended", revocation({ until: NOW - 1 })],
  ["one that never ends", revocation({ until: 1e300 })],
  ["an end that is not a number", revocation({ until: "soon" })],
  ["an issuer that is not text", revocation({ issuer: {} })],
  ["a text that is too long", revocation({ name: "a".repeat(20_000) })],
  ["a number", 1],
])("%s is ignored", (_, text) => {
  expect(readEvent(text, NOW)).toBeUndefined();
});
