/**
 * Bodies with two readings, or none. A filter that reads one name and a login that reads the other; a body that is
 * JSON for only one decoder; a "password" that is a list, an object with a `toString`, or a number, which later code
 * interprets in its own way. Or bodies that cost more to read than to send. Here a login is one JSON object in UTF-8
 * of at most 16 KiB, with two members that are strings; everything else gets an answer that contains no value, and no
 * password is checked.
 */
import { deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { startEchoBackend } from "../support/echo-backend.ts";
import { expectEnvelope } from "../support/envelope.ts";
import { startNaiveLogin } from "../support/naive-login.ts";
import { use } from "../support/pair.ts";
import { askLogin } from "../support/ask.ts";
import { chunked, exchange, type Peer, type RawResponse, request } from "../support/raw-client.ts";
import { ALICE, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";

const SECRET = ALICE.password;
const GOOD = JSON.stringify(ALICE);
const withMember = (members: string): string => GOOD.replace("{", `{${members},`);
const utf16 = (text: string): Buffer => Buffer.from(`\ufeff${text}`, "utf16le");
const nested = (open: string, close: string, depth: number): string =>
  withMember(`"x":${open.repeat(depth)}1${close.repeat(depth)}`);

/** Each contains alice's password, and would be accepted by a lenient parser. */
const REFUSED: Readonly<Record<string, readonly (string | Buffer)[]>> = {
  "a name twice": [
    withMember('"username":"bob"'),
    withMember('"password":"x"'),
    GOOD.replace("}", ',"username":"alice"}'),
  ],
  "a name twice, one of them escaped": [
    withMember('"\\u0075sername":"bob"'),
    withMember('"passwor\\u0064":"x"'),
  ],
  "a name twice, further in": [withMember('"x":{"y":1,"y":2}'), withMember('"x":[{"y":1,"y":2}]')],
  "names of the prototype": [
    withMember('"__proto__":{"admin":true}'),
    `{"__proto__":${GOOD}}`,
    `{"constructor":${GOOD}}`,
  ],
  "no object": [
    `[${GOOD}]`,
    JSON.stringify(GOOD),
    "null",
    "7",
    '""',
    "[]",
    `[["username","alice"],["password","${SECRET}"]]`,
  ],
  "nothing, or not enough": [
    "",
    " ",
    "{}",
    '{"username":"alice"}',
    `{"password":"${SECRET}"}`,
    `{"Username":"alice","Password":"${SECRET}"}`,
  ],
  "values that are not strings": [
    "7",
    "null",
    "true",
    `["${SECRET}"]`,
    `{"0":"${SECRET}"}`,
    `{"toString":"${SECRET}"}`,
    "1e400",
    '""',
  ].map((value) => `{"username":"alice","password":${value}}`),
  "a name that is not a string": ["7", "null", '["alice"]', '{"$ne":null}', '""'].map(
    (value) => `{"username":${value},"password":"${SECRET}"}`,
  ),
  "not quite JSON": [
    `${GOOD}x`,
    `${GOOD}${GOOD}`,
    `${GOOD}\u0000`,
    GOOD.replaceAll('"', "'"),
    GOOD.replace("}", ",}"),
    GOOD.replace("{", "{/**/"),
    GOOD.slice(0, -1),
    `)]}',\n${GOOD}`,
    withMember('"x":01'),
    withMember('"x":NaN'),
    withMember('"x":"\t"'),
  ],
  "a form": [`username=alice&password=${encodeURIComponent(SECRET)}`],
  "another encoding": [
    utf16(GOOD),
    utf16(GOOD).swap16(),
    Buffer.from(GOOD.replace("alice", "alic\u00e9"), "latin1"),
    Buffer.from(withMember('"x":"\u00c0\u00af"'), "latin1"),
    Buffer.concat([Buffer.from(GOOD), Buffer.of(0x80)]),
  ],
  "compressed bytes": [gzipSync(GOOD), deflateSync(GOOD)],
  depth: [
    nested("[", "]", 33),
    nested('{"y":', "}", 33),
    nested("[", "]", 3000),
    "[".repeat(16_000),
    '{"x":'.repeat(3000),
  ],
};

/** Odd, but unambiguous: the login of alice. */
const TAKEN: Readonly<Record<string, readonly string[]>> = {
  "further members": [
    withMember('"remember":true'),
    withMember(`"x":"${"y".repeat(10_000)}"`),
    withMember('"constructor":1'),
  ],
  "huge numbers elsewhere": [
    withMember(`"x":${"9".repeat(8000)}`),
    withMember('"x":1e400,"y":-1e-400'),
  ],
  "acceptable depth": [nested("[", "]", 20)],
  "whitespace and escapes": [
    ` \r\n\t${GOOD}\n `,
    GOOD.replace("alice", "\\u0061lice"),
    GOOD.replace("username", "\\u0075sername"),
  ],
};

const JSON_TYPE = "Content-Type: application/json";

async function post(peer: Peer, body: string | Buffer, ...headers: string[]): Promise<RawResponse> {
  const bytes = Buffer.from(body);
  const own = ["POST /api/authenticate HTTP/1.1", "Host: a", `Content-Length: ${bytes.length}`];
  const head = request([...own, ...headers, "Connection: close"]);
  return (await exchange(peer, Buffer.concat([Buffer.from(head), bytes]))).last;
}

describe("Sallyport", () => {
  const standing = use(
    () => startEchoBackend(),
    (target) => startSallyport({ target }),
  );

  it.each(Object.entries(REFUSED))("refuses a body with %s", async (_name, bodies) => {
    const { gate } = standing();
    const before = await scrape(gate);
    for (const body of bodies) {
      const answer = await post(gate, body, JSON_TYPE);
      expectEnvelope(answer, 400);
      expect(answer.body).not.toContain(SECRET);
    }
    // None counted as a login attempt.
    const after = await scrape(gate);
    const grown = (result: string): number => {
      const series = `sallyport_logins_total{result="${result}"}`;
      return Number(after.value(series)) - Number(before.value(series));
    };
    expect([grown("malformed"), grown("bad_credentials")]).toEqual([bodies.length, 0]);
    expect(JSON.stringify(gate.log()) + gate.stderr()).not.toContain(SECRET);
    expect(gate.exited()).toBe(false);
  });

  it("reports a member named __proto__ as the fault", async () => {
    const { body } = await post(standing().gate, withMember('"__proto__":{}'), JSON_TYPE);
    expect(body).toContain("a field named __proto__");
  });

  it.each(Object.entries(TAKEN))("accepts a body with %s", async (_name, bodies) => {
    for (const body of bodies)
      expect((await post(standing().gate, body, JSON_TYPE)).status).toBe(200);
  });

  it.each([
    "application/json; charset=utf-16",
    "application/json; charset=utf-8; charset=utf-16",
    "application/json; charset=utf-7",
    "application/json, text/plain",
    "text/json",
    "application/problem+json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "",
  ])("does not read a body of type %j", async (type) => {
    expectEnvelope(await post(standing().gate, GOOD, `Content-Type: ${type}`), 415);
  });

  it("does not decompress a body", async () => {
    for (const [coding, body] of [
      ["gzip", gzipSync(GOOD)],
      ["deflate", deflateSync(GOOD)],
      ["gzip", gzipSync(Buffer.alloc(10_000_000, " "))],
    ] as const) {
      const { status } = await post(
        standing().gate,
        body,
        JSON_TYPE,
        `Content-Encoding: ${coding}`,
      );
      expect([400, 413, 415]).toContain(status);
    }
  });

  it("refuses a body that is declared as compressed, whatever it is (RFC 9110 §8.4)", async () => {
    for (const coding of ["gzip", "br", "x", "identity, gzip"]) {
      const answer = await post(standing().gate, GOOD, JSON_TYPE, `Content-Encoding: ${coding}`);
      expectEnvelope(answer, 415);
    }
  });

  it("refuses a body with two types", async () => {
    for (const types of [
      [JSON_TYPE, "Content-Type: text/plain"],
      ["Content-Type: text/plain", JSON_TYPE],
    ]) {
      expect([400, 415]).toContain((await post(standing().gate, GOOD, ...types)).status);
    }
  });

  it("reads a chunked body like one with a length, and ignores trailers", async () => {
    const { gate } = standing();
    const head = ["POST /api/authenticate HTTP/1.1", "Host: a", JSON_TYPE, "Connection: close"];
    const inChunks = [...head, "Transfer-Encoding: chunked"];
    const single = GOOD.split("")
      .map((letter) => `1\r\n${letter}\r\n`)
      .join("");
    for (const body of [
      chunked(GOOD),
      `${single}0\r\n\r\n`,
      chunked(GOOD, ["Content-Type: text/plain"]),
    ]) {
      expect((await exchange(gate, request(inChunks, body))).last.status).toBe(200);
    }
    const endless = request(inChunks, "4000\r\n".concat(" ".repeat(0x4000), "\r\n").repeat(4));
    const { last, ended } = await exchange(gate, endless, { responses: Infinity });
    expectEnvelope(last, 413);
    expect(ended).toBe("closed");
  });
});

describe("a naive login", () => {
  it("lets alice in with ambiguous bodies", async () => {
    await using login = await startNaiveLogin({
      users: { alice: { password: SECRET } },
      lock: "nothing",
    });
    const bodies = [
      withMember('"username":"bob"'),
      withMember('"password":"x"'),
      withMember('"\\u0075sername":"bob"'),
      withMember('"__proto__":{"admin":true}'),
      `{"username":"alice","password":["${SECRET}"]}`,
      `{"username":["alice"],"password":"${SECRET}"}`,
      nested("[", "]", 3000),
    ];
    for (const body of bodies) expect((await askLogin(login, body)).status).toBe(200);
    expect((await askLogin(login, GOOD, { "content-type": "text/plain" })).status).toBe(200);
  });
});
