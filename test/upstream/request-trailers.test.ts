import { expect, test } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { useSallyport } from "../support/pair.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";

const standing = useSallyport();
const CHUNKED = ["Host: localhost", "Transfer-Encoding: chunked"];
const EMPTY_BODY = "0\r\n";

const post = (path: string, body: string): string =>
  request([`POST /public/${path} HTTP/1.1`, ...CHUNKED], body);
const statuses = ({ responses }: { responses: readonly { status: number }[] }): number[] =>
  responses.map(({ status }) => status);

test("a sum behind the body arrives behind the body", async () => {
  const { gate, backend } = standing();
  const body = "a".repeat(200_000);
  await exchange(gate, post("sum", chunked(body, ["X-Sum: 42", "X-Other: 1"])));
  const [seen] = backend.requests();
  expect(seen?.body.length).toBe(body.length);
  expect(seen?.trailers).toEqual([
    ["X-Sum", "42"],
    ["X-Other", "1"],
  ]);
});

test("a forged identity does not, in any spelling, nor what may not trail", async () => {
  const { gate, backend } = standing();
  const forged = [
    ...[
      "X-Auth-Subject: root",
      "x_auth_subject: root",
      "X.Auth.Groups: root",
      "X-Remote-User: root",
    ],
    ...["Authorization: Bearer x", "Host: evil", "Upgrade: x", "Connection: close", "Cookie: a=1"],
    ...["X-Forwarded-For: 203.0.113.7", "X-Request-Id: forged", "Content-Type: x", "TE: gzip"],
  ];
  await exchange(gate, post("sum", chunked("body", [...forged, "X-Sum: 42"])));
  expect(backend.requests()).toHaveLength(1);
  expect(backend.requests()[0]?.trailers).toEqual([["X-Sum", "42"]]);
});

test.each(["Content-Length: 0", "Transfer-Encoding: chunked"])(
  "framing behind the body is refused: %s",
  async (field) => {
    const { gate, backend } = standing();
    const bytes = post("sum", chunked("body", [field, "X-Sum: 42"]));
    expectRefusal(await exchange(gate, bytes, { responses: Infinity }), 400);
    expect(backend.requests()).toEqual([]);
  },
);

test("trailers are of one request, and the connection to the backend serves on", async () => {
  const { gate, backend } = standing();
  const bytes = [
    post("1", chunked("one", ["X-Sum: first"])),
    post("2", chunked("two")),
    post("3", chunked("three", ["X-Sum: third"])),
    request(["GET /public/4 HTTP/1.1", "Host: localhost"]),
  ];
  for (const each of bytes) expect(statuses(await exchange(gate, each))).toEqual([200]);
  const seen = backend.requests();
  expect(seen.map(({ body, trailers }) => [body.toString(), trailers])).toEqual([
    ["one", [["X-Sum", "first"]]],
    ["two", []],
    ["three", [["X-Sum", "third"]]],
    ["", []],
  ]);
  const used = backend.connections.filter(({ requests }) => requests.length > 0);
  expect(used).toHaveLength(1);
});

test.each([
  ["another chunked body", post("after", chunked("hello"))],
  ["another empty one", post("after", `${EMPTY_BODY}\r\n`)],
  [
    "a body that looks like an end",
    request(["PUT /public/after HTTP/1.1", "Host: a", "Content-Length: 7"], "\r\n0\r\n\r\n"),
  ],
  ["no body", request(["GET /public/after HTTP/1.1", "Host: a"])],
])("an empty chunked body with trailers leaves nothing behind for %s", async (_name, after) => {
  const { gate, backend } = standing();
  const empty = post("empty", `${EMPTY_BODY}X-Sum: left-over\r\n\r\n`);
  expect(statuses(await exchange(gate, empty))).toEqual([200]);
  expect(statuses(await exchange(gate, after))).toEqual([200]);
  const [first, second, ...more] = backend.requests();
  expect(more).toEqual([]);
  expect(first?.body.length).toBe(0);
  expect(second?.startLine).toContain("/public/after");
  expect(second?.trailers).toEqual([]);
  const used = backend.connections.filter(({ requests }) => requests.length > 0);
  expect(used).toHaveLength(1);
  expect(used[0]?.received().toString().split("/public/after")[1]).not.toContain("left-over");
});
