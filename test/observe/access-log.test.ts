import fc from "fast-check";
import { expect, test } from "vitest";
import { formatAccessLine, outcomeWith } from "./outcomes.ts";

const NOW = Date.UTC(2026, 10, 3, 12, 0, 0, 7);

test("the fields are in a fixed order", () => {
  expect(formatAccessLine(outcomeWith(), NOW)).toBe(
    '{"time":"2026-11-03T12:00:00.007Z","level":"info","msg":"request","id":3700000000001,' +
      '"request_id":"r-1","client":"192.0.2.7","method":"GET","host":"api.example.com",' +
      '"path":"/orders/1","route":"orders","upstream":"app","target":"http://127.0.0.1:8080",' +
      '"status":200,"source":"upstream","auth":"allowed","reason":"ok","subject":"alice",' +
      '"bytes_in":0,"bytes_out":130,"duration_ms":3.142,"upstream_ms":2.000,"protocol":"HTTP/1.1"}',
  );
});

test("undefined fields are omitted", () => {
  const nothing = {
    upstream: undefined,
    target: undefined,
    auth: undefined,
    reason: undefined,
    subject: undefined,
    upstreamMs: undefined,
  };
  const line: object = JSON.parse(formatAccessLine(outcomeWith(nothing), NOW));
  expect(Object.keys(line)).toEqual(
    "time level msg id request_id client method host path route status source bytes_in bytes_out duration_ms protocol".split(
      " ",
    ),
  );
});

test.each([
  ["self", 503, "warn"],
  ["self", 401, "info"],
  ["upstream", 503, "info"],
] as const)("a %s answer %i is logged at %s", (source, status, level) => {
  const line = formatAccessLine(outcomeWith({ source, status }), NOW);
  expect(JSON.parse(line)).toMatchObject({ level });
});

test("a token in a path is masked", () => {
  const path = "/reset/eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl/now";
  const line = formatAccessLine(outcomeWith({ path }), NOW);
  expect(JSON.parse(line)).toMatchObject({ path: "/reset/[redacted]/now" });
});

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom(
    '"',
    "\\",
    "\n",
    "\r",
    "\u2028",
    "\u2029",
    "\u0000",
    "\u001b[2J",
    "\u009b",
    "\ud800",
  ),
);
const optional = fc.option(text, { nil: undefined });
const outcomes = fc.record({
  id: fc.maxSafeNat(),
  requestId: text,
  client: text,
  method: text,
  host: text,
  path: text,
  route: text,
  upstream: optional,
  target: optional,
  status: fc.integer({ min: 100, max: 599 }),
  source: fc.constantFrom("self", "upstream"),
  auth: fc.constantFrom("allowed", "denied", "skipped", undefined),
  reason: optional,
  subject: optional,
  bytesIn: fc.maxSafeNat(),
  bytesOut: fc.maxSafeNat(),
  durationMs: fc.integer({ min: 0, max: 1e9 }).map((us) => us / 1000),
  upstreamMs: fc.option(
    fc.integer({ min: 0, max: 1e9 }).map((us) => us / 1000),
    { nil: undefined },
  ),
  protocol: text,
});

test("any outcome is one printable line of JSON with the same content", () => {
  fc.assert(
    fc.property(outcomes, fc.integer({ min: 0, max: 4e12 }), (outcome, now) => {
      const line = formatAccessLine(outcome, now);
      // oxlint-disable-next-line no-control-regex -- the point of the test
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202e]/);
      expect(JSON.parse(line)).toEqual(
        JSON.parse(
          JSON.stringify({
            time: new Date(now).toISOString(),
            level: outcome.source === "self" && outcome.status >= 500 ? "warn" : "info",
            msg: "request",
            id: outcome.id,
            request_id: outcome.requestId,
            client: outcome.client,
            method: outcome.method,
            host: outcome.host,
            path: outcome.path,
            route: outcome.route,
            upstream: outcome.upstream,
            target: outcome.target,
            status: outcome.status,
            source: outcome.source,
            auth: outcome.auth,
            reason: outcome.reason,
            subject: outcome.subject,
            bytes_in: outcome.bytesIn,
            bytes_out: outcome.bytesOut,
            duration_ms: outcome.durationMs,
            upstream_ms: outcome.upstreamMs,
            protocol: outcome.protocol,
          }),
        ),
      );
    }),
  );
});

test("numbers that JSON cannot represent do not break the line", () => {
  const line = formatAccessLine(outcomeWith({ durationMs: Number.NaN, bytesOut: Infinity }), NOW);
  expect(JSON.parse(line)).toMatchObject({ duration_ms: null, bytes_out: null });
});
