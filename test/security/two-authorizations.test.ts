/**
 * Two tokens in one request. Node uses the first `Authorization` and drops the second; another parser uses the last,
 * or joins them. The caller then depends on the parser. Two tokens are no token: 401.
 */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const get = (values: readonly string[], path = "/orders"): string =>
  request([
    `GET ${path} HTTP/1.1`,
    "Host: localhost",
    ...values.map((value) => `Authorization: ${value}`),
  ]);

const REFUSED = [
  { name: "a good one first", values: (good: string) => [`Bearer ${good}`, "Bearer other"] },
  { name: "a good one last", values: (good: string) => ["Bearer other", `Bearer ${good}`] },
  { name: "the same twice", values: (good: string) => [`Bearer ${good}`, `Bearer ${good}`] },
  { name: "Basic next to Bearer", values: (good: string) => [`Bearer ${good}`, "Basic eDp5"] },
  { name: "an empty one next to it", values: (good: string) => [`Bearer ${good}`, ""] },
  { name: "two in one field", values: (good: string) => [`Bearer ${good}, Bearer ${good}`] },
  { name: "two after one scheme", values: (good: string) => [`Bearer ${good} ${good}`] },
];

describe("Sallyport", () => {
  const standing = useSallyport();

  it.each(REFUSED)("refuses $name", async ({ values }) => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, get(values(gate.token)));
    expectEnvelope(last, 401);
    expect(last.header("www-authenticate")).toMatch(
      /^Bearer realm="[^"]*", error="invalid_token"$/,
    );
    expect(backend.seen()).toEqual([]);
  });

  it.each(["bearer", "BEARER", "Bearer"])("accepts the scheme as %s", async (scheme) => {
    const { gate } = standing();
    expect((await exchange(gate, get([`${scheme} ${gate.token}`]))).last.status).toBe(200);
  });

  it("does not use a token from elsewhere", async () => {
    const { gate, backend } = standing();
    const elsewhere = [`access_token=${gate.token}`, `token=${gate.token}`].join("&");
    const bytes = request([
      `GET /orders?${elsewhere} HTTP/1.1`,
      "Host: localhost",
      `Cookie: token=${gate.token}; access_token=${gate.token}`,
      `X-Authorization: Bearer ${gate.token}`,
      `Proxy-Authorization: Bearer ${gate.token}`,
      `Authorization_: Bearer ${gate.token}`,
    ]);
    const { last } = await exchange(gate, bytes);
    expectEnvelope(last, 401);
    expect(last.header("www-authenticate")).toMatch(/^Bearer realm="[^"]*"$/);
    expect(backend.seen()).toEqual([]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("lets the first one win", async () => {
    const { gate } = standing();
    const answer = await exchange(gate, get([`Bearer ${gate.token}`, "Bearer other"]));
    expect(answer.last.status).toBe(200);
  });
});
