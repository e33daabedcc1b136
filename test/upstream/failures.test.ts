import { connect } from "node:net";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import { UPSTREAM_ERROR_REASONS } from "../../src/core/request/outcome.ts";
import {
  BackendFault,
  failure,
  failureOf,
  failureReason,
  upstreamReason,
} from "../../src/upstream/http/failures.ts";
import { closedPort } from "../support/dead-ends.ts";

const withCode = (code: string): Error => Object.assign(new Error(code), { code });

describe("the reason of a failure", () => {
  test.each([
    ["ECONNREFUSED", "connect_refused"],
    ["EHOSTUNREACH", "connect_refused"],
    ["ENETUNREACH", "connect_refused"],
    ["ENOENT", "connect_refused"],
    ["EACCES", "connect_refused"],
    ["ENOTFOUND", "dns"],
    ["EAI_AGAIN", "dns"],
    ["ECONNRESET", "reset"],
    ["EPIPE", "reset"],
    ["ETIMEDOUT", "connect_timeout"],
    ["EPROTO", "tls"],
    ["CERT_HAS_EXPIRED", "tls"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "tls"],
    ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "tls"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "tls"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "tls"],
    ["ERR_SSL_WRONG_VERSION_NUMBER", "tls"],
    ["EMFILE", "resource_exhausted"],
    ["ENFILE", "resource_exhausted"],
    ["ENOBUFS", "resource_exhausted"],
    ["ENOMEM", "resource_exhausted"],
    ["EADDRNOTAVAIL", "resource_exhausted"],
    ["HPE_INVALID_CONSTANT", "invalid_response"],
    ["SOMETHING_NEW", "invalid_response"],
  ])("%s is %s", (code, reason) => {
    expect(failureReason(withCode(code))).toBe(reason);
  });

  test.each([
    [new BackendFault("connection_lost"), "reset"],
    [new BackendFault("connect_timeout"), "connect_timeout"],
    [new BackendFault("response_timeout"), "response_timeout"],
    [new BackendFault("idle_timeout"), "idle_timeout"],
    [new BackendFault("invalid_answer"), "invalid_response"],
    [new BackendFault("client_gone"), "aborted"],
    [new Error("no code at all"), "invalid_response"],
    ["no error at all", "invalid_response"],
  ])("%s is %s", (error, reason) => {
    expect(failureReason(error)).toBe(reason);
  });

  test("is that of the first address of a name", () => {
    const several = new AggregateError([withCode("ECONNREFUSED"), withCode("ETIMEDOUT")]);
    expect(failureReason(several)).toBe("connect_refused");
  });

  test("is connect_refused for a port where nothing listens", async () => {
    const socket = connect(await closedPort(), "127.0.0.1");
    const [error] = await once(socket, "error");
    expect(failureReason(error)).toBe("connect_refused");
  });
});

test.each(UPSTREAM_ERROR_REASONS)("%s becomes an error with that reason", (reason) => {
  const cause = new Error("why");
  const error = failure(reason, cause);
  expect(error).toBeInstanceOf(GateError);
  // These are not reported to the client: it has disconnected, or already has the header section.
  const rows: Readonly<Record<string, string>> = {
    aborted: "reset",
    idle_timeout: "response_timeout",
  };
  const told = rows[reason] ?? reason;
  expect([error.code, error.reason, error.cause]).toEqual([told, reason, cause]);
  expect(upstreamReason(error)).toBe(reason);
});

test("another error has no upstream reason", () => {
  expect(upstreamReason(new GateError("body_too_large", { reason: "body_too_large" }))).toBe(
    undefined,
  );
  expect(upstreamReason(new GateError("no_route"))).toBe(undefined);
});

test("a request that cannot be sent is not counted as the backend's failure", () => {
  const codeOf = (error: unknown): string => failureOf(error).code;
  expect(codeOf(new BackendFault("unsendable"))).toBe("bad_request");
  expect(codeOf(new GateError("body_too_large"))).toBe("body_too_large");
  const others = ["reset", "invalid_response", "invalid_response"];
  expect([withCode("ECONNRESET"), "x", undefined].map(codeOf)).toEqual(others);
});
