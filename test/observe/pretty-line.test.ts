import { expect, test } from "vitest";
import { prettyLine } from "../../src/observe/log/log-sink.ts";
import { formatAccessLine, outcomeWith } from "./outcomes.ts";

test("a pretty line starts with the time of day, the level and the message", () => {
  const json = `{"level":"info","time":"2026-11-03T12:00:01.123Z","address":"0.0.0.0:8443","msg":"listening"}`;
  expect(prettyLine(json, false)).toBe("12:00:01.123 INFO  listening  address=0.0.0.0:8443");
});

test("a line about a request starts with the status and the request", () => {
  const line = prettyLine(formatAccessLine(outcomeWith(), Date.UTC(2026, 10, 3, 12)), false);
  expect(line).toMatch(/^12:00:00\.000 INFO {2}200 GET \/orders\/1 3\.1ms {2}id=/);
  expect(line).toContain("  route=orders  ");
  expect(line).toContain("  subject=alice");
});

test.each([
  {},
  { path: `/${"long/".repeat(100)}` },
  { subject: "s".repeat(70), host: "h".repeat(200), reason: "body_too_large" },
  { method: "M".repeat(40), path: "/\u001b".repeat(80) },
])("a line about a request has at most 120 columns: %j", (changes) => {
  const line = prettyLine(formatAccessLine(outcomeWith(changes), 0), false);
  expect(line.length).toBeLessThanOrEqual(120);
  expect(line).toContain("  id=");
});

test.each([
  [200, 32],
  [304, 36],
  [401, 33],
  [502, 31],
])("status %i has the right colour", (status, code) => {
  const line = prettyLine(formatAccessLine(outcomeWith({ status }), 0), true);
  expect(line).toContain(`\u001b[${code}m${status}\u001b[39m`);
});

test("colours can be switched on and off", () => {
  const json = `{"level":"warn","time":"2026-11-03T12:00:01.123Z","msg":"slow"}`;
  expect(prettyLine(json, true)).toContain("\u001b[33mWARN \u001b[39m");
  expect(prettyLine(json, false)).not.toContain("\u001b");
});

test("control sequences from clients do not reach the terminal", () => {
  const hostile = "a\u001b[2J\u009b\n b\u202e";
  const request = formatAccessLine(outcomeWith({ path: hostile, host: hostile }), 0);
  const note = JSON.stringify({ level: "info", time: "", msg: hostile, field: hostile });
  for (const line of [prettyLine(request, false), prettyLine(note, false)]) {
    // oxlint-disable-next-line no-control-regex -- the point of the test
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  }
});

test("a line that is not a JSON object stays unchanged", () => {
  expect(prettyLine("plain", false)).toBe("plain");
});
