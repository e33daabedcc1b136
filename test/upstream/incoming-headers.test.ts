import { describe, expect, test } from "vitest";
import type { IncomingHttpHeaders } from "node:http";
import { clientFields, responseTrailers } from "../../src/upstream/headers/incoming-headers.ts";
import { pairsOf } from "../support/pairs.ts";
import { permitFor } from "../support/permit.ts";

const fieldsFor = (headers: IncomingHttpHeaders, requestId: string): string[] =>
  clientFields(headers, permitFor({ requestId }, {}), 200, undefined);

describe("the backend's header section", () => {
  test("keeps its order and separate values, with our request ID", () => {
    const headers = {
      "content-type": "text/plain",
      "set-cookie": ["a=1", "b=2"],
      "content-length": "5",
      "www-authenticate": 'Basic realm="backend"',
      "x-empty": "",
    };
    expect(pairsOf(fieldsFor(headers, "id-1"))).toEqual([
      ["content-type", "text/plain"],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["content-length", "5"],
      ["www-authenticate", 'Basic realm="backend"'],
      ["x-empty", ""],
      ["X-Request-Id", "id-1"],
    ]);
  });

  test.each([
    ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate"],
    ...["proxy-authorization", "proxy-authentication-info", "te", "transfer-encoding", "upgrade"],
  ])("loses the hop-by-hop field %s", (name) => {
    const got = fieldsFor({ [name]: "x", "x-kept": "1" }, "id-1");
    expect(got).toEqual(["x-kept", "1", "X-Request-Id", "id-1"]);
  });

  test.each([
    ["x-private", ["x-private"]],
    ["close, X-Private", ["x-private"]],
    ["X-Private ,x-other", ["x-private", "x-other"]],
    ["keep-alive", []],
    ["close", []],
  ])("loses the fields named in Connection: %j", (connection, lost) => {
    const got = fieldsFor({ connection, "x-private": "1", "x-other": "2" }, "id-1");
    const names = pairsOf(got).map(([name]) => name);
    expect(names).toEqual(
      ["x-private", "x-other", "X-Request-Id"].filter((name) => !lost.includes(name)),
    );
  });

  test("has no other request ID", () => {
    expect(fieldsFor({ "x-request-id": "theirs" }, "ours")).toEqual(["X-Request-Id", "ours"]);
  });
});

test("trailers pass without those that change how the message is interpreted", () => {
  const trailers = {
    "grpc-status": "0",
    "x-several": ["1", "2"],
    "content-length": "9",
    "transfer-encoding": "chunked",
    host: "x",
    connection: "close",
    "x-request-id": "theirs",
    "set-cookie": ["a=b"],
    "www-authenticate": "Basic",
    "cache-control": "public",
    location: "/x",
  };
  expect(responseTrailers(trailers)).toEqual([
    ["grpc-status", "0"],
    ["x-several", "1"],
    ["x-several", "2"],
  ]);
});
