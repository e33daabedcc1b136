/**
 * A login at almost the right address. `POST /api/authenticate/` or `/API/authenticate` is not an endpoint of the
 * proxy, so it follows the routes: with a token (or on a public route) to a backend, with name and password, into the
 * logs of an application that must never see them. Many backends ignore case, slashes and extensions, so people write
 * such paths. Every spelling of the path gets a 404 from the proxy, whoever the caller is, and the body goes nowhere.
 */
import { describe, expect, it } from "vitest";
import { ask, fieldsOf } from "../support/ask.ts";
import { useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";
import { ALICE } from "../support/sallyport.ts";

const BODY = JSON.stringify(ALICE);
const SPELLINGS = [
  ...["/api/authenticate/", "/API/authenticate", "/Api/Authenticate/", "/api/AUTHENTICATE"],
  ...[
    "/api/authenticate.",
    "/api/authenticate.json",
    "/api/authenticate.do/",
    "/%61pi/authenticate/",
  ],
];
/** Ambiguous paths, which are refused earlier. */
const AMBIGUOUS = [
  ...["/api//authenticate", "//api/authenticate", "/api/authenticate;x", "/api/authenticate//"],
  ...["/api/authenticate%20", "/api/authenticate/%20"],
  ...["/api/./authenticate", "/api/authenticate/.", "/api%2Fauthenticate", "/api/authenticate%09"],
];

describe("Sallyport", () => {
  const standing = useSallyport(undefined, {
    config: { routes: [{ name: "all", path: "/", auth: "none", upstream: "app" }] },
  });

  const post = (path: string, more: readonly string[] = []): string =>
    request(
      [
        `POST ${path} HTTP/1.1`,
        ...["Host: localhost", "Content-Type: application/json"],
        ...[`Content-Length: ${BODY.length}`, ...more],
      ],
      BODY,
    );

  it.each([
    ...SPELLINGS.map((path) => [path, 404] as const),
    ...AMBIGUOUS.map((path) => [path, 400] as const),
  ])("answers a login at %s itself, with %d", async (path, status) => {
    const { gate, backend } = standing();
    for (const more of [[], [`Authorization: Bearer ${gate.token}`]]) {
      const { last } = await exchange(gate, post(path, more));
      expect(last.status).toBe(status);
    }
    expect(backend.seen()).toEqual([]);
  });

  it("explains the same", async () => {
    const { gate, backend } = standing();
    const query = new URLSearchParams({
      method: "POST",
      url: "https://localhost/api/authenticate/",
    });
    const answer = await ask({ port: gate.adminPort }, `/-/explain?${query.toString()}`);
    expect(fieldsOf(answer)["verdict"]).toMatchObject({ outcome: "refused", status: 404 });
    expect(backend.seen()).toEqual([]);
  });

  it.each(["/api/authenticated", "/api/authenticate/x", "/api/authenticate-2", "/api/v1/version/"])(
    "leaves %s to the routes",
    async (path) => {
      const { gate, backend } = standing();
      expect((await exchange(gate, post(path))).last.status).toBe(200);
      expect(backend.seen()).toEqual([`POST ${path}`]);
    },
  );
});
