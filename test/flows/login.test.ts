import { decodeJwt, decodeProtectedHeader } from "jose";
import { describe, expect, it } from "vitest";
import { ask, askLogin, fieldsOf } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { use } from "../support/pair.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";
import { ALICE, cheapHash, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";

const MAX_BODY_BYTES = 16 * 1024;
const users = {
  alice: { password: cheapHash(ALICE.password), groups: ["sales", "admin"] },
  bob: { password: cheapHash("bob's own"), disabled: true },
};
const standing = use(
  () => startEchoBackend(),
  (target) => startSallyport({ target, files: { "users.yaml": JSON.stringify({ users }) } }),
);

describe("a correct username and password", () => {
  it("get an envelope with a token", async () => {
    const answer = await askLogin(standing().gate, ALICE);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      "content-type": "application/json",
      "content-length": String(answer.body.length),
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": expect.stringMatching(/^[A-Za-z0-9._-]{1,128}$/),
    });
    expect(fieldsOf(answer)).toEqual({
      id: expect.toSatisfy(Number.isSafeInteger),
      message: "Authentication succeeded",
      success: true,
      token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
    });
  });

  it("get a token with the claims of the contract", async () => {
    const before = Math.floor(Date.now() / 1000);
    const { gate } = standing();
    const tokens = await Promise.all([1, 2].map(() => gate.login(ALICE.username, ALICE.password)));
    const [first, second] = tokens.map((token) => decodeJwt(token));
    expect(first).toEqual({
      iss: "sallyport",
      sub: "alice",
      aud: "sallyport",
      iat: expect.any(Number),
      exp: Number(first?.iat) + 18_000,
      jti: expect.stringMatching(/./),
      groups: ["sales", "admin"],
    });
    expect(first?.iat).toBeGreaterThanOrEqual(before);
    expect(first?.iat).toBeLessThanOrEqual(Date.now() / 1000);
    expect(second?.jti).not.toBe(first?.jti);
    const header = decodeProtectedHeader(tokens[0] ?? "");
    // An RFC 7638 thumbprint: SHA-256, base64url.
    expect(header).toEqual({ alg: "ES256", typ: "JWT", kid: expect.stringMatching(/^[\w-]{43}$/) });
  });

  it.each(["Bearer not-a-token", "Basic YWxpY2U6eA==", "Bearer"])(
    "ignore an Authorization header: %s",
    async (authorization) => {
      expect((await askLogin(standing().gate, ALICE, { authorization })).status).toBe(200);
    },
  );
});

describe("wrong credentials", () => {
  it("get identical responses except for the id, whatever is wrong", async () => {
    const tries = [
      { username: "alice", password: "wrong" },
      { username: "nobody", password: ALICE.password },
      { username: "bob", password: "bob's own" },
      { username: "__proto__", password: "x" },
    ];
    const answers = await Promise.all(
      tries.map(async (credentials) => {
        const body = JSON.stringify(credentials);
        const { raw } = await exchange(standing().gate, loginBytes(body, ["X-Request-Id: same"]));
        return raw.replace(/"id":\d+/, '"id":0').replace(/\r\nDate: [^\r]+/, "");
      }),
    );
    expect(answers[0]).toMatch(/^HTTP\/1\.1 401 /);
    expect(answers[0]).not.toMatch(/www-authenticate/i);
    expect(answers[0]).toMatch(
      /\{"id":0,"message":"Invalid username or password","success":false\}$/,
    );
    expect(new Set(answers).size).toBe(1);
  });

  it("differ in their ids", async () => {
    const answers = await Promise.all(
      ["u1", "u2"].map((username) => askLogin(standing().gate, { username, password: "x" })),
    );
    expect(new Set(answers.map((answer) => fieldsOf(answer)["id"])).size).toBe(2);
  });
});

describe("a malformed body", () => {
  const CASES: readonly (readonly [name: string, body: string | Buffer, names: RegExp])[] = [
    ["not JSON", "{username: s3cret}", /body/],
    ["cut short", '{"username":"s3cret","password":"s3cret"', /body/],
    ["empty", "", /body/],
    ["an array", '["s3cret"]', /body/],
    ["a string", '"s3cret"', /body/],
    ["null", "null", /body/],
    ["no username", '{"password":"s3cret"}', /username/],
    ["no password", '{"username":"s3cret"}', /password/],
    ["a number for a name", '{"username":7,"password":"s3cret"}', /username/],
    ["a list for a password", '{"username":"x","password":["s3cret"]}', /password/],
    ["null for a password", '{"username":"s3cret","password":null}', /password/],
    ["an empty name", '{"username":"","password":"s3cret"}', /username/],
    ["a field twice", '{"username":"a","password":"s3cret","password":"s3cret"}', /field/],
    [
      "a field twice, escaped",
      '{"username":"a","\\u0075sername":"b","password":"s3cret"}',
      /field/,
    ],
    ["fields in __proto__", '{"__proto__":{"username":"s3cret","password":"s3cret"}}', /body/],
    [
      "invalid UTF-8",
      Buffer.concat([Buffer.from('{"username":"'), Buffer.from([0xff]), Buffer.from('"}')]),
      /body/,
    ],
    ["deep nesting", `{"username":${"[".repeat(8000)}`, /body/],
  ];

  it.each(CASES)(
    "gets 400, names the field and never its value: %s",
    async (_name, body, names) => {
      const { gate } = standing();
      const answer = await askLogin(gate, body);
      expect(answer.status).toBe(400);
      expect(answer.headers["content-type"]).toBe("application/json");
      const { message, success } = fieldsOf(answer);
      expect(success).toBe(false);
      expect(message).toMatch(names);
      expect(answer.body).not.toContain("s3cret");
      expect(gate.exited()).toBe(false);
    },
  );

  it("is counted as malformed", async () => {
    const { gate } = standing();
    const before = await scrape(gate);
    await askLogin(gate, "{}");
    const after = await scrape(gate);
    const series = 'sallyport_logins_total{result="malformed"}';
    expect(after.value(series)).toBe(Number(before.value(series)) + 1);
  });
});

describe("another content type", () => {
  it.each([
    ["text", "text/plain"],
    ["a form", "application/x-www-form-urlencoded"],
    ["another charset", "application/json; charset=latin1"],
    ["one that only begins like it", "application/jsonp"],
  ])("gets 415: %s", async (_name, type) => {
    expect((await askLogin(standing().gate, ALICE, { "content-type": type })).status).toBe(415);
  });

  it("gets 415 when it is missing", async () => {
    const body = JSON.stringify(ALICE);
    const bytes = request(["POST /api/authenticate HTTP/1.1", "Host: a", length(body)], body);
    expect((await exchange(standing().gate, bytes)).last.status).toBe(415);
  });

  it("does not include application/json with charset=utf-8", async () => {
    const type = 'Application/JSON; Charset="UTF-8"';
    expect((await askLogin(standing().gate, ALICE, { "content-type": type })).status).toBe(200);
  });
});

describe("a body of more than 16 KiB", () => {
  const padded = (bytes: number): string => {
    const body = JSON.stringify({ ...ALICE, padding: "" });
    return body.replace('"padding":""', `"padding":"${"x".repeat(bytes - body.length)}"`);
  };

  it("gets 413 because of its length, and the connection ends", async () => {
    const bytes = loginBytes(padded(MAX_BODY_BYTES + 1));
    const { last, ended } = await exchange(standing().gate, bytes, { responses: Infinity });
    expect(last.status).toBe(413);
    expect(last.header("connection")).toBe("close");
    expect(ended).toBe("closed");
  });

  it("gets 413 while it arrives in chunks", async () => {
    const head = ["POST /api/authenticate HTTP/1.1", "Host: a", "Content-Type: application/json"];
    const bytes = request(
      [...head, "Transfer-Encoding: chunked"],
      chunked(padded(MAX_BODY_BYTES + 1)),
    );
    const { last, ended } = await exchange(standing().gate, bytes, { responses: Infinity });
    expect(last.status).toBe(413);
    expect(last.header("connection")).toBe("close");
    expect(ended).toBe("closed");
  });

  it("is one byte more than the largest body that is read", async () => {
    const { last } = await exchange(standing().gate, loginBytes(padded(MAX_BODY_BYTES)));
    expect(last.status).toBe(200);
  });
});

describe("another method", () => {
  it.each(["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])("gets 405: %s", async (method) => {
    const { gate, backend } = standing();
    const seen = backend.requests.length;
    const answer = await ask(gate, "/api/authenticate", { method, token: gate.token });
    expect(answer.status).toBe(405);
    expect(answer.headers["allow"]).toBe("POST");
    expect(backend.requests.length).toBe(seen);
  });
});

function length(body: string): string {
  return `Content-Length: ${Buffer.byteLength(body)}`;
}

function loginBytes(body: string, headers: readonly string[] = []): string {
  const head = ["POST /api/authenticate HTTP/1.1", "Host: a", "Content-Type: application/json"];
  return request([...head, ...headers, length(body)], body);
}
