/**
 * One path with two readings. The check sees `/public/../admin`, which begins with /public and needs no token; the
 * forwarded path is normalized, and the backend serves /admin. The same works with encoded dots, backslashes, and
 * everything else that a backend may decode, cut off or fold. Sallyport decides about, and forwards, one canonical
 * string, and refuses paths with more than one reading.
 */
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const get = (target: string, headers: readonly string[] = []): string =>
  request([`GET ${target} HTTP/1.1`, "Host: localhost", ...headers]);

const TRICKS: readonly { target: string; naive?: string }[] = [
  { target: "/public/../admin", naive: "GET /admin" },
  { target: "/public/%2e%2e/admin", naive: "GET /admin" },
  { target: "/public/%2E./admin", naive: "GET /admin" },
  { target: "/public/.%2e/admin", naive: "GET /admin" },
  { target: "/public\\..\\admin", naive: "GET /admin" },
  { target: "/public/x/../../admin", naive: "GET /admin" },
  { target: "/public/./x" },
  { target: "/public/.." },
  { target: "/public/..;/admin" },
  { target: "/public/..%2fadmin" },
  { target: "/public/..%5cadmin" },
  { target: "/public%2f..%2fadmin" },
  { target: "/public/%252e%252e/admin" },
  { target: "/public/;x=/../admin" },
  { target: "/public//admin" },
  { target: "//public/admin" },
  { target: "/public/%00" },
  { target: "/public/%0d%0aX:y" },
  { target: "/public/%c0%ae%c0%ae/admin" },
  { target: "/public/%zz" },
  { target: "/public/x%3fy" },
  { target: "/public/x%23y" },
  { target: "/public/..%20" },
  { target: "/public/..%20/admin" },
  { target: "/public/%20%2e/x" },
  { target: "/public/admin%20" },
];

const FORWARDED: readonly { target: string; seen: string }[] = [
  { target: "/public/a%20b", seen: "/public/a%20b" },
  { target: "/public/%61%2Db", seen: "/public/a-b" },
  { target: "/public/caf%c3%a9", seen: "/public/caf%C3%A9" },
  { target: "/public/...", seen: "/public/..." },
  { target: "/public/x?a=/../%2e%2e;b&c=%zz&&d", seen: "/public/x?a=/../%2e%2e;b&c=%zz&&d" },
  { target: "/public/x?", seen: "/public/x?" },
  { target: "/%70ublic/x", seen: "/public/x" },
];

describe("Sallyport", () => {
  const standing = useSallyport();

  it.each(TRICKS)("refuses $target", async ({ target }) => {
    const { gate, backend } = standing();
    expectRefusal(await exchange(gate, get(target), { responses: Infinity }), 400);
    expect(backend.seen()).toEqual([]);
  });

  it.each(TRICKS)("refuses $target with a token, too", async ({ target }) => {
    const { gate, backend } = standing();
    const bytes = get(target, [`Authorization: Bearer ${gate.token}`]);
    expectRefusal(await exchange(gate, bytes, { responses: Infinity }), 400);
    expect(backend.seen()).toEqual([]);
  });

  it.each(FORWARDED)("forwards $target as $seen", async ({ target, seen }) => {
    const { gate, backend } = standing();
    expect((await exchange(gate, get(target))).last.status).toBe(200);
    expect(backend.seen()).toEqual([`GET ${seen}`]);
  });

  it.each(["/publicx", "/PUBLIC/x", "/Public/x", "/public.x"])(
    "does not treat %s as public",
    async (target) => {
      const { gate, backend } = standing();
      expect((await exchange(gate, get(target))).last.status).toBe(401);
      expect(backend.seen()).toEqual([]);
    },
  );
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it.each(TRICKS.filter((row) => row.naive !== undefined))(
    "serves $target as /admin without a token",
    async ({ target, naive }) => {
      const { gate, backend } = standing();
      expect((await exchange(gate, get(target))).last.status).toBe(200);
      expect(backend.seen()).toEqual([naive]);
    },
  );
});
