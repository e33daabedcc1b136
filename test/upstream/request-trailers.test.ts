import { expect, test } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { useSallyport } from "../support/pair.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";

const standing = useSallyport(undefined, { withoutToken: true });
const CHUNKED = ["Host: localhost", "Transfer-Encoding: chunked", "Trailer: X-Sum", "TE: trailers"];

const post = (path: string, body: string): string =>
  request([`POST /public/${path} HTTP/1.1`, ...CHUNKED], body);

test("trailers are dropped, and the body arrives complete", async () => {
  const { gate, backend } = standing();
  const body = "a".repeat(200_000);
  const forged = ["X-Auth-Subject: root", "Authorization: Bearer x", "Host: evil", "X-Sum: 42"];
  const { last } = await exchange(gate, post("sum", chunked(body, forged)));
  expect(last.status).toBe(200);
  const [seen] = backend.requests();
  expect(seen?.body.length).toBe(body.length);
  expect(seen?.trailers).toEqual([]);
  expect(seen?.headers.map(([name]) => name.toLowerCase())).not.toContain("trailer");
});

test.each(["Content-Length: 0", "Transfer-Encoding: chunked"])(
  "framing fields in trailers are refused: %s",
  async (field) => {
    const { gate, backend } = standing();
    const bytes = post("sum", chunked("body", [field, "X-Sum: 42"]));
    expectRefusal(await exchange(gate, bytes, { responses: Infinity }), 400);
    expect(backend.requests()).toEqual([]);
  },
);

test("the connection to the backend stays usable, without any leftovers", async () => {
  const { gate, backend } = standing();
  const bytes = [
    post("1", chunked("one", ["X-Sum: left-over"])),
    post("2", "0\r\nX-Sum: left-over\r\n\r\n"),
    post("3", chunked("three")),
    request(["GET /public/4 HTTP/1.1", "Host: localhost"]),
  ];
  for (const each of bytes) expect((await exchange(gate, each)).last.status).toBe(200);
  const seen = backend.requests();
  expect(seen.map(({ body, trailers }) => [body.toString(), trailers])).toEqual([
    ["one", []],
    ["", []],
    ["three", []],
    ["", []],
  ]);
  const used = backend.connections.filter(({ requests }) => requests.length > 0);
  expect(used).toHaveLength(1);
  expect(used[0]?.received().toString()).not.toContain("left-over");
});
