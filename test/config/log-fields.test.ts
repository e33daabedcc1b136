import { expect, test } from "vitest";
import { load, problemsOf, SMALLEST } from "./configuration-file.ts";

const fields = (text: string): string => `${SMALLEST}log: { fields: { ${text} } }\n`;

async function messagesOf(text: string): Promise<string> {
  return (await problemsOf(text)).map(({ message }) => message).join("\n");
}

test.each([
  "user_agent: header:User-Agent",
  "scheme: request:scheme, tls: request:tls_version, attempts: request:attempts",
  'tenant: "claim:https://example.com/tenant"',
  "time_of_login: claim:auth_time, forwarded: header:X-Forwarded-For",
])("the fields %s are accepted", async (text) => {
  const { configuration } = await load(fields(text));
  expect(Object.keys(configuration.log.fields)).not.toEqual([]);
});

test.each([
  ["a: header:Authorization", "carries a secret"],
  ["a: header:proxy-authorization", "carries a secret"],
  ["a: header:COOKIE", "carries a secret"],
  ["a: header:Set-Cookie", "carries a secret"],
  ["a: header:X-Api-Key", "carries a secret"],
  ["a: header:X-Auth-Token", "carries a secret"],
  ["a: header:X-Amz-Security-Token", "carries a secret"],
  ["a: header:X-CSRF-Token", "carries a secret"],
  ["a: header:Sec-WebSocket-Protocol", "carries a secret"],
  ["a: header:DPoP", "carries a secret"],
  ["a: header:a b", "the name of a header"],
  ["a: User-Agent", "header:NAME, claim:NAME or request:NAME"],
  ["a: 1", "header:NAME, claim:NAME or request:NAME"],
  ['a: "claim:"', "header:NAME, claim:NAME or request:NAME"],
  ["a: request:port", "must be request: with scheme, tls_version, attempts"],
  ["a: request:constructor", "must be request: with scheme"],
  ["status: header:X-A", "is a field of every access line"],
  ["trace_id: header:X-A", "is a field of every access line"],
  ["a b: header:X-A", "letters, digits and _"],
  ["constructor: header:X-A", "is taken"],
  ["__proto__: header:X-A", "this key is not allowed"],
  [Array.from({ length: 33 }, (_, at) => `f${at}: header:X-A`).join(", "), "more than 32"],
])("the fields %s are an error", async (text, expected) => {
  expect(await messagesOf(fields(text))).toContain(expected);
});

test("a header from which a route reads tokens is an error", async () => {
  const routes = "routes: [{ name: r, upstream: app, tokenFrom: [{ header: X-Ticket }] }]\n";
  const text = fields("a: header:x-ticket") + routes;
  expect(await messagesOf(text)).toContain("tokens are taken from");
});
