import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ErrorCode, errorRow, ERRORS, GateError } from "../../src/core/request/errors.ts";
import { errorAnswer, successAnswer } from "../../src/server/request/write-answer.ts";
import { TrackedResponse } from "../../src/server/request/tracked-response.ts";
import { expectEnvelope, expectRefusal } from "../support/envelope.ts";
import { listeningPort } from "../support/listening-port.ts";
import { exchange, request } from "../support/raw-client.ts";
import { pairsOf } from "../support/pairs.ts";
import { send } from "../../src/server/request/pipeline.ts";

const CODES = Object.keys(ERRORS) as ErrorCode[];

function headersOf({ headers }: { readonly headers: readonly string[] }): Map<string, string> {
  const pairs = pairsOf(headers);
  const named = new Map(pairs.map(([name, value]) => [name.toLowerCase(), value]));
  expect(named.size).toBe(pairs.length);
  return named;
}

describe("an envelope", () => {
  test("has the headers of the contract, and the length in bytes", () => {
    const message = "Gr\u00fc\u00dfe \ud83d\ude00";
    const answer = successAnswer({ id: 7, requestId: "request-7" }, message, { token: "x" });
    expect(Object.fromEntries(headersOf(answer))).toEqual({
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(answer.body)),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": "request-7",
    });
    expect([answer.status, answer.close, JSON.parse(String(answer.body))]).toEqual([
      200,
      false,
      { id: 7, message, success: true, token: "x" },
    ]);
  });
});

describe.each(CODES)("the response to %s", (code) => {
  const row = errorRow(code);
  const answer = errorAnswer(new GateError(code, { reason: "throttled_global" }), 7, "r", {
    realm: "realm-1",
  });
  const headers = headersOf(answer);

  test("is the envelope without the reason", () => {
    expect(answer.status).toBe(row.status);
    expect(JSON.parse(String(answer.body))).toEqual({
      id: 7,
      message: row.message,
      success: false,
    });
    expect(JSON.stringify(answer)).not.toContain("throttled_global");
  });

  test("has only the headers of its row", () => {
    expect(headers.get("connection")).toBe(row.close === true ? "close" : undefined);
    expect(answer.close).toBe(row.close === true);
    expect(headers.has("www-authenticate")).toBe(row.challenge === true);
    expect(headers.get("proxy-status")).toBe(
      row.proxyStatus === undefined ? undefined : `sallyport; error=${row.proxyStatus}`,
    );
    expect(headers.has("retry-after")).toBe(row.status === 503);
    expect(headers.has("allow")).toBe(false);
  });
});

test.each([
  ["unauthenticated", 'Bearer realm="realm-1"'],
  ["invalid_token", 'Bearer realm="realm-1", error="invalid_token"'],
  ["forbidden", 'Bearer realm="realm-1", error="insufficient_scope"'],
  ["bad_credentials", undefined],
] as const)("the challenge of %s is %s", (code, challenge) => {
  const headers = headersOf(errorAnswer(new GateError(code), 7, "r", { realm: "realm-1" }));
  expect(headers.get("www-authenticate")).toBe(challenge);
});

test("a response contains its details: seconds rounded up, methods, another message", () => {
  const details = { retryAfter: 1.2, allow: "GET, HEAD", message: "The field x must be a string" };
  const answer = errorAnswer(new GateError("login_throttled", details), 7, "r", { realm: "x" });
  expect(headersOf(answer).get("retry-after")).toBe("2");
  expect(headersOf(answer).get("allow")).toBe("GET, HEAD");
  expect(JSON.parse(String(answer.body))).toMatchObject({ message: details.message });
});

describe("sending", () => {
  let server: Server;
  const sent: number[] = [];
  const answers: Record<string, (message: IncomingMessage, response: TrackedResponse) => void> = {
    "/kept": (message, response) => {
      sent.push(
        send(errorAnswer(new GateError("no_route"), 7, "r", { realm: "x" }), message, response),
      );
    },
    "/closing": (message, response) => {
      sent.push(
        send(errorAnswer(new GateError("bad_request"), 7, "r", { realm: "x" }), message, response),
      );
    },
    "/twice": (message, response) => {
      response.writeHead(200, { "Content-Length": 2 });
      response.end("ok");
      sent.push(
        send(errorAnswer(new GateError("internal"), 7, "r", { realm: "x" }), message, response),
      );
    },
  };
  beforeAll(async () => {
    server = createServer({ ServerResponse: TrackedResponse }, (message, response) => {
      answers[message.url ?? ""]?.(message, response);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterAll(() => server.close());

  const to = (line: string, body = ""): string =>
    request([`${line} HTTP/1.1`, "Host: a", `Content-Length: ${body.length}`], body);

  test("returns the bytes of the body, and keeps the connection open", async () => {
    const bytes = to("GET /kept") + to("POST /kept", "x".repeat(100_000)) + to("GET /kept");
    const { responses } = await exchange({ port: listeningPort(server) }, bytes, { responses: 3 });
    for (const response of responses) expectEnvelope(response, 404);
    expect(sent.splice(0)).toEqual(responses.map(({ body }) => body.length));
    expect(responses).toHaveLength(3);
  });

  test("has no body for HEAD", async () => {
    const { last, raw } = await exchange({ port: listeningPort(server) }, to("HEAD /kept"), {
      head: true,
    });
    expect([last.status, sent.splice(0)]).toEqual([404, [0]]);
    expect(Number(last.header("content-length"))).toBeGreaterThan(0);
    expect(raw.endsWith("\r\n\r\n")).toBe(true);
  });

  test.each(["", "x".repeat(300_000)])(
    "a response that closes the connection closes it",
    async (body) => {
      const bytes = to("POST /closing", body) + to("GET /kept");
      const exchanged = await exchange({ port: listeningPort(server) }, bytes, {
        responses: Infinity,
      });
      expectRefusal(exchanged, 400);
      sent.length = 0;
    },
  );

  test("does nothing once a response has begun", async () => {
    const { responses } = await exchange({ port: listeningPort(server) }, to("GET /twice"));
    expect(responses.map(({ status, body }) => [status, body])).toEqual([[200, "ok"]]);
    expect(sent.splice(0)).toEqual([0]);
  });
});
