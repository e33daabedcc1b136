/** The books of the soak can tell of trouble: each kind of it is put in, and the property fails. */
import { expect, test } from "vitest";
import type { AccessLine } from "../../soak/accounts/access-line.ts";
import type { Asked, Got } from "../../soak/accounts/asked.ts";
import { FaultWindows } from "../../soak/accounts/fault-windows.ts";
import { Ledger } from "../../soak/accounts/ledger.ts";
import { LogBook } from "../../soak/accounts/log-book.ts";
import { judgeRequests } from "../../soak/report/requests.ts";
import { failures } from "./failures.ts";

const TARGET = "http://127.0.0.2:1";

function answered(status: number, more: Partial<Got & { what: "answer" }> = {}): Got {
  return { what: "answer", status, envelopeId: undefined, fault: undefined, ...more };
}

function asked(got: Got, more: Partial<Asked> = {}): Asked {
  const now = performance.now();
  const id = "soak-1";
  return { id, kind: "get", startedMs: now, endedMs: now, right: [200], got, ...more };
}

function line(status: number, more: Partial<AccessLine> = {}): AccessLine {
  const words = { requestId: "soak-1", method: "GET", route: "open", source: "upstream" };
  return { id: 7, status, auth: "allowed", target: TARGET, reason: "ok", ...words, ...more };
}

interface Case {
  readonly windows?: FaultWindows;
  readonly asked?: readonly Asked[];
  readonly lines?: readonly AccessLine[];
  readonly log?: readonly string[];
}

/** The properties that fail. One good request is always among them. */
function judged({
  windows = new FaultWindows(),
  asked: requests = [],
  lines = [],
  log = [],
}: Case) {
  const ledger = new Ledger(windows);
  const book = new LogBook((row) => ledger.line(row));
  ledger.line(line(200, { id: 1, requestId: "soak-0" }));
  ledger.asked(asked(answered(200), { id: "soak-0" }));
  for (const row of lines) ledger.line(row);
  for (const row of requests) ledger.asked(row);
  for (const text of log) book.read(text);
  return failures(judgeRequests(ledger, book));
}

/** A fault at the target that allows a 502 and an answer that breaks off. */
function fault(target = TARGET): { windows: FaultWindows; end: () => void } {
  const windows = new FaultWindows();
  return { windows, end: windows.open("backend killed", target, [502, "broke"]) };
}

const LOST = "requests lost that need not be";
const UNTRUE = "log tells what the client got";
const broke: Got = { what: "broke", why: "ECONNRESET" };

test("a request with its right answer and its line is in order", () => {
  expect(judged({ asked: [asked(answered(200))], lines: [line(200)] })).toEqual([]);
});

test.each<[string, Got, number]>([
  ["a 502", answered(502), 502],
  ["a 404 in place of a 200", answered(404), 404],
  ["a wrong body", answered(200, { fault: "the body is another" }), 200],
  ["an answer that broke off", broke, 200],
])("%s without a fault is a lost request", (_, got, status) => {
  expect(judged({ asked: [asked(got)], lines: [line(status)] })).toEqual([LOST]);
});

test.each<[string, Got]>([
  ["a 502", answered(502)],
  ["an answer that broke off", broke],
])("%s during a fault of its backend is excused", (_, got) => {
  const { windows } = fault();
  expect(judged({ windows, asked: [asked(got)], lines: [line(502)] })).toEqual([]);
});

test("a fault excuses nothing at another backend", () => {
  const { windows } = fault("http://127.0.0.2:2");
  expect(judged({ windows, asked: [asked(answered(502))], lines: [line(502)] })).toEqual([LOST]);
});

test("a fault excuses nothing that it cannot cause", () => {
  const { windows } = fault();
  const requests = [asked(answered(504))];
  expect(judged({ windows, asked: requests, lines: [line(504)] })).toEqual([LOST]);
});

test("a fault excuses nothing that began long after it, or ended before", () => {
  const { windows, end } = fault();
  end();
  const late = performance.now() + 5_000;
  const before = performance.now() - 60_000;
  for (const time of [late, before]) {
    const requests = [asked(answered(502), { startedMs: time, endedMs: time + 10 })];
    expect(judged({ windows, asked: requests, lines: [line(502)] })).toEqual([LOST]);
  }
});

test("a wrong body is lost even during a fault", () => {
  const { windows } = fault();
  const requests = [asked(answered(200, { fault: "the body is another" }))];
  expect(judged({ windows, asked: requests, lines: [line(200)] })).toEqual([LOST]);
});

test("the log must tell the status and the id that the client got", () => {
  expect(judged({ asked: [asked(answered(200))], lines: [line(499)] })).toEqual([UNTRUE]);
  const enveloped = asked(answered(401, { envelopeId: 8 }), { right: [401] });
  expect(judged({ asked: [enveloped], lines: [line(401)] })).toEqual([UNTRUE]);
});

test("every request has one line, and every line its request", () => {
  expect(judged({ asked: [asked(answered(200))] })).toEqual(["requests without a log line"]);
  expect(judged({ lines: [line(200)] })).toEqual(["log lines without a request"]);
  const twice = [line(200), line(200, { id: 8 })];
  expect(judged({ asked: [asked(answered(200))], lines: twice })).toEqual(["ids that came twice"]);
  const sameId = [line(200, { id: 1 })];
  expect(judged({ asked: [asked(answered(200))], lines: sameId })).toEqual(["ids that came twice"]);
});

test("a client that left need not be in the log, and does not count as a loss if it is", () => {
  const left = asked({ what: "left" }, { right: [] });
  expect(judged({ asked: [left] })).toEqual([]);
  expect(judged({ asked: [left], lines: [line(499)] })).toEqual([]);
});

test("what was refused without being a request has its line", () => {
  expect(judged({ lines: [line(400, { requestId: "made-here" })] })).toEqual([
    "refusals of what is no request",
  ]);
});

test.each([
  '{"level":"error","msg":"a request failed unexpectedly"}',
  '{"level":"warn","msg":"log lines were dropped","dropped":3}',
  "Error: not caught",
])("the log may not hold %s", (text) => {
  expect(judged({ log: [text] })).toEqual(["errors in the log or on standard error"]);
});
