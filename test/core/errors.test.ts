import { describe, expect, test } from "vitest";
import { ConfigError, describeProblem } from "../../src/core/config-problem.ts";
import { errorRow, ERRORS, GateError, type ErrorCode } from "../../src/core/request/errors.ts";

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** The status codes in the contract. */
const STATUS: Readonly<Record<ErrorCode, number>> = {
  unauthenticated: 401,
  invalid_token: 401,
  invalid_certificate: 401,
  forbidden: 403,
  network_denied: 403,
  keys_unusable: 503,
  authorization_unavailable: 503,
  bad_credentials: 401,
  login_malformed: 400,
  login_media_type: 415,
  login_too_large: 413,
  login_proof: 400,
  login_throttled: 429,
  users_unavailable: 503,
  login_queue_full: 503,
  sign_in_failed: 400,
  provider_unavailable: 503,
  bad_request: 400,
  plain_http: 400,
  upgrade_unsupported: 400,
  protocol_unsupported: 501,
  cross_site: 403,
  origin_not_allowed: 403,
  no_route: 404,
  method_not_allowed: 405,
  rate_limited: 429,
  concurrency_limited: 429,
  request_timeout: 408,
  deadline_exceeded: 408,
  body_too_large: 413,
  expectation_failed: 417,
  underscore_header: 400,
  header_too_large: 431,
  connect_refused: 502,
  dns: 502,
  tls: 502,
  reset: 502,
  invalid_response: 502,
  connect_timeout: 504,
  response_timeout: 504,
  upstream_busy: 503,
  resource_exhausted: 503,
  loop_detected: 508,
  version_unavailable: 503,
  drain_timeout: 503,
  internal: 500,
};

describe("the table of errors", () => {
  test("has the status codes of the contract", () => {
    expect(Object.fromEntries(CODES.map((code) => [code, errorRow(code).status]))).toEqual(STATUS);
  });

  test("closes the connection wherever the contract says so, and after internal errors", () => {
    const ending = CODES.filter((code) => errorRow(code).close === true);
    expect(ending.map((code) => errorRow(code).status).toSorted((a, b) => a - b)).toEqual([
      ...[400, 400, 400, 400, 401, 408, 413, 413, 417, 431, 500, 503],
    ]);
  });

  test("has a Proxy-Status error of RFC 9209 for each 502 and 504, and for a few other codes", () => {
    const speaking = CODES.filter((code) => errorRow(code).proxyStatus !== undefined);
    const expected = CODES.filter((code) => [502, 504].includes(STATUS[code]));
    expect(speaking).toEqual([...expected, "upstream_busy", "resource_exhausted", "loop_detected"]);
  });

  test("has the same message for every problem with a token", () => {
    expect(errorRow("invalid_token").message).toBe(errorRow("unauthenticated").message);
  });

  test("has a challenge for 401 and 403, but not for logins", () => {
    const challenging = CODES.filter((code) => errorRow(code).challenge === true);
    expect(challenging).toEqual([
      ...["unauthenticated", "invalid_token", "invalid_certificate", "forbidden"],
    ]);
  });
});

describe("a GateError", () => {
  test("has the contents of its row", () => {
    const error = new GateError("no_route");
    expect(error).toBeInstanceOf(Error);
    expect([error.code, error.message]).toEqual(["no_route", ERRORS.no_route.message]);
    expect(error.reason).toBe("no_route");
    expect([error.retryAfter, error.allow, error.cause]).toEqual([undefined, undefined, undefined]);
  });

  test("preserves the details of the occurrence", () => {
    const cause = new Error("why");
    const details = {
      message: "ours",
      retryAfter: 3,
      allow: "GET",
      reason: "not_json",
      cause,
    } as const;
    expect(new GateError("login_malformed", details)).toMatchObject(details);
  });
});

test("an invalid configuration is reported with positions, and all problems at once", () => {
  const problems = [
    {
      file: "config.yaml",
      line: 3,
      column: 5,
      message: "is not known",
      hint: "did you mean path?",
    },
    { file: "tls.crt", message: "cannot be read" },
  ];
  expect(problems.map(describeProblem)).toEqual([
    "config.yaml:3:5: is not known (did you mean path?)",
    "tls.crt: cannot be read",
  ]);
  const error = new ConfigError(problems);
  expect(error.problems).toBe(problems);
  expect(error.message.split("\n")).toHaveLength(2);
});
