import { describe, expect, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import { checkLoginHead, parseLoginRequest } from "../../src/server/endpoints/authenticate.ts";

function checkHead(headersDistinct: Record<string, string[]>): void {
  checkLoginHead({ bodyLength: 2 }, { headersDistinct });
}

function refusalOf(work: () => unknown): GateError {
  try {
    work();
  } catch (error) {
    if (error instanceof GateError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

test.each([
  [{ username: "alice", password: "s3cret" }, undefined],
  [{ username: "Zo\u00eb", password: " \u0000 " }, undefined],
  [
    { username: "alice", password: "s3cret" },
    { remember: true, nested: { username: 1 } },
  ],
])("%j is accepted with any other fields: %j", (login, more) => {
  expect(parseLoginRequest(Buffer.from(JSON.stringify({ ...login, ...more })))).toEqual(login);
});

describe("a refusal names the field, never its value", () => {
  test.each<[body: string | Buffer, names: RegExp, reason: string]>([
    ["", /body/, "not_json"],
    ["s3cret", /body/, "not_json"],
    ['{"username":"s3cret"', /body/, "not_json"],
    ["{username:'s3cret'}", /body/, "not_json"],
    ['{"username":"a","password":"s3cret",}', /body/, "not_json"],
    ['{"username":"a","password":"s3cret"} x', /body/, "not_json"],
    ["[]", /object/, "malformed"],
    ['"s3cret"', /object/, "malformed"],
    ["null", /object/, "malformed"],
    ["7", /object/, "malformed"],
    ["{}", /username/, "malformed"],
    ['{"password":"s3cret"}', /username/, "malformed"],
    ['{"username":"s3cret"}', /password/, "malformed"],
    ['{"username":7,"password":"s3cret"}', /username/, "malformed"],
    ['{"username":null,"password":"s3cret"}', /username/, "malformed"],
    ['{"username":["s3cret"],"password":"s3cret"}', /username/, "malformed"],
    ['{"username":"s3cret","password":{"a":"s3cret"}}', /password/, "malformed"],
    ['{"username":"s3cret","password":true}', /password/, "malformed"],
    ['{"username":"","password":"s3cret"}', /username/, "malformed"],
    ['{"username":"s3cret","password":""}', /password/, "malformed"],
    ['{"Username":"a","password":"s3cret"}', /username/, "malformed"],
    ['{"username":"a","username":"b","password":"s3cret"}', /field/, "not_json"],
    ['{"username":"a","password":"s3cret","x":{"y":1,"y":2}}', /field/, "not_json"],
    ['{"username":"a","\\u0070assword":"b","password":"s3cret"}', /field/, "not_json"],
    ['{"__proto__":{"username":"a"},"password":"s3cret"}', /body/, "not_json"],
    [`{"username":${"[".repeat(5000)}${"]".repeat(5000)}}`, /body/, "not_json"],
    [Buffer.from([0x7b, 0xff, 0x7d]), /body/, "not_utf8"],
    [Buffer.from('{"username":"\u00e9","password":"x"}', "latin1"), /body/, "not_utf8"],
    [Buffer.from('{"username":"a","password":"x"}', "utf16le"), /body/, "not_json"],
  ])("%s", (body, names, reason) => {
    const error = refusalOf(() => parseLoginRequest(Buffer.from(body as string)));
    expect([error.code, error.reason]).toEqual(["login_malformed", reason]);
    expect(error.message).toMatch(names);
    expect(error.message).not.toContain("s3cret");
    expect(error.cause).toBeUndefined();
  });
});

describe("the content type", () => {
  test.each([
    "application/json",
    "APPLICATION/JSON",
    " application/json ",
    "application/json;charset=utf-8",
    'application/json ; charset = "UTF-8"',
  ])("is JSON: %s", (type) => {
    expect(() => checkHead({ "content-type": [type] })).not.toThrow();
  });

  test.each([
    ...[undefined, "", "text/plain", "text/json", "application/jsonp", "application/json-patch"],
    ...["application/json; charset=latin1", "application/json, text/plain", "application/json;"],
    ...["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "*/*"],
  ])("is not: %s", (type) => {
    const headers = type === undefined ? {} : { "content-type": [type] };
    expect(refusalOf(() => checkHead(headers)).code).toBe("login_media_type");
  });

  test.each<[string, Record<string, string[]>]>([
    ["sent twice", { "content-type": ["application/json", "application/json"] }],
    ["encoded", { "content-type": ["application/json"], "content-encoding": ["gzip"] }],
  ])("is not: %s", (_name, headers) => {
    expect(refusalOf(() => checkHead(headers)).code).toBe("login_media_type");
  });
});
