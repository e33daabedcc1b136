import { describe, expect, test } from "vitest";
import { effectiveConfiguration } from "../../src/config/effective.ts";
import { load, problemsOf, SMALLEST } from "./configuration-file.ts";

const route = (text: string): string =>
  `${SMALLEST}routes: [{ name: r, upstream: app, ${text} }]\n`;

async function messages(text: string): Promise<string[]> {
  return (await problemsOf(text)).map(({ message }) => message);
}

describe("a header that a route may not change", () => {
  test.each([
    ...["Connection", "Transfer-Encoding", "Content-Length", "Host", "TE", "Upgrade", "Expect"],
    ...["X-Auth-Subject", "x_auth_groups", "X-Forwarded-User", "Remote-User", "X-Remote-Extra-A"],
    ...["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Request-Id", "X-Auth-Client-Subject"],
    "X-Retry-Attempt",
  ])("towards the backend: %s", async (name) => {
    for (const change of [`set: { ${name}: x }`, `add: { ${name}: x }`, `remove: [${name}]`]) {
      expect(await messages(route(`requestHeaders: { ${change} }`))).toEqual([
        expect.stringContaining("must not be a header that frames the message"),
      ]);
    }
  });

  test.each(["Connection", "Transfer-Encoding", "Content-Length", "X-Request-Id", "Trailer"])(
    "towards the client: %s",
    async (name) => {
      expect(await messages(route(`responseHeaders: { remove: [${name}] }`))).toHaveLength(1);
    },
  );

  test("one that the configuration uses for the caller", async () => {
    const text = `${route("requestHeaders: { set: { x-user: root } }")}identity: { headers: { subject: X_User } }\n`;
    expect(await messages(text)).toEqual([
      "routes[0].requestHeaders.set.x-user must not be one of identity.headers, which tell the backend who is calling",
    ]);
  });
});

describe("the value of a header", () => {
  test.each([
    ["a line break", String.raw`"a\r\nX-Admin: 1"`],
    ["a NUL", String.raw`"a\0"`],
    ["another alphabet", '"é"'],
  ])("refused: %s", async (_what, value) => {
    expect(await messages(route(`requestHeaders: { set: { X-A: ${value} } }`))).toHaveLength(1);
  });

  test("an unknown reference is an error", async () => {
    expect(await messages(route('requestHeaders: { set: { X-A: "${subjct}" } }'))).toEqual([
      expect.stringContaining("needs the environment variable subjct"),
    ]);
  });

  test("may combine environment variables with those of the request", async () => {
    const text = route('requestHeaders: { set: { X-A: "${ZONE}/${subject}" } }');
    const { configuration } = await load(text, { env: { ZONE: "eu" } });
    expect(configuration.routes[0]?.requestHeaders?.set).toEqual({ "X-A": "eu/${subject}" });
  });

  test("is an error if its key occurs twice, in any case", async () => {
    const text = route("requestHeaders: { set: { X-A: a }, remove: [x_a] }");
    expect(await messages(text)).toEqual([
      "routes[0].requestHeaders.remove[0] must not be changed twice",
    ]);
  });

  test("is not shown if it may be a secret", async () => {
    const loaded = await load(
      route('requestHeaders: { set: { X-Api-Key: hunter2hunter2, X-User-Token: "${subject}" } }'),
    );
    const shown = JSON.stringify(effectiveConfiguration(loaded));
    expect(shown).not.toContain("hunter2");
    expect(shown).toContain("${subject}");
  });
});
