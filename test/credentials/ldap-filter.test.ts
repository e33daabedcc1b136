import { EqualityFilter, ExtensibleFilter, FilterParser } from "ldapts";
import { expect, test } from "vitest";
import {
  escapeFilterValue,
  filledFilter,
  nameAttributes,
} from "../../src/credentials/stores/ldap/ldap-store.ts";

test.each([
  ["alice", "alice"],
  ["*", "\\2a"],
  ["a)(uid=*", "a\\29\\28uid\\3d\\2a"],
  ["\\2a", "\\5c2a"],
  ["a\0", "a\\00"],
  ["é", "é"],
  ["a&|!<>~=:", "a\\26\\7c\\21\\3c\\3e\\7e\\3d\\3a"],
  ["{dn}", "\\7bdn\\7d"],
])("%j is written as %j", (value, escaped) => {
  expect(escapeFilterValue(value)).toBe(escaped);
});

test.each([
  "*",
  "a)(uid=*",
  ")(|(uid=*",
  "\\2a",
  "\\",
  "a\\)",
  "*)(objectClass=*",
  "é",
  "{dn}",
  "$&",
])("whatever the name, the filter compares one attribute with it: %j", (username) => {
  const filter = FilterParser.parseString(
    filledFilter("(uid={username})", { username, dn: "cn=x" }),
  );
  expect(filter).toBeInstanceOf(EqualityFilter);
  expect(filter).toMatchObject({ attribute: "uid", value: username });
});

test("finds nested groups of Active Directory by their matching rule", () => {
  const template = "(member:1.2.840.113556.1.4.1941:={dn})";
  const filter = FilterParser.parseString(
    filledFilter(template, { username: "a", dn: "CN=A (b),DC=x" }),
  );
  expect(filter).toBeInstanceOf(ExtensibleFilter);
  expect(filter).toMatchObject({
    matchType: "member",
    rule: "1.2.840.113556.1.4.1941",
    value: "CN=A (b),DC=x",
  });
});

test("the name attributes are those that the filter compares with the name", () => {
  expect(nameAttributes("(&(objectClass=person)(|(uid={username})(mail={username})))")).toEqual([
    ...["uid", "mail"],
  ]);
});
