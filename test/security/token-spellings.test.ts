/**
 * One token in many spellings, and one text with two readings. Lenient base64 accepts padding, whitespace, another
 * alphabet and other bits after the last byte: then a revoked or counted token comes back as a "new" one, and each
 * variant occupies a place in a cache. And JSON with duplicate names, or that is almost JSON, has one meaning for the
 * check and another for the execution. Here a token has one spelling and its JSON one reading, or it is not a token.
 * Its size is limited before anything is decoded.
 */
import { createPublicKey } from "node:crypto";
import { describe, expect, it } from "vitest";
import { byKey, compact } from "../support/compact-token.ts";
import { believes, decoding, lenient } from "../support/naive-verifiers.ts";
import { exchange, request } from "../support/raw-client.ts";
import {
  claims,
  expectAllRefused,
  header,
  OWN,
  present,
  useTokenGate,
} from "../support/token-gate.ts";

const own = byKey(OWN.privateKey);
const naive = lenient({ [OWN.kid]: createPublicKey(OWN.privateKey) });

/** A valid token with both characters in its signature that the other alphabet lacks. */
function goodToken(): string {
  for (;;) {
    const token = compact(header(), claims(), own);
    if (/-[^.]*$/.test(token) && /_[^.]*$/.test(token)) return token;
  }
}
const good = goodToken();
const [head = "", payload = "", signature = ""] = good.split(".");
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const last = LETTERS.indexOf(signature.at(-1) ?? "");

/** Other encodings of the same 64 bytes. */
const SIGNATURES: Readonly<Record<string, readonly string[]>> = {
  padding: [`${signature}=`, `${signature}==`, `${signature}====`],
  "other bits after the last byte": Array.from(
    { length: 15 },
    (_, bits) => signature.slice(0, -1) + LETTERS[last + bits + 1],
  ),
  "the other alphabet": [
    signature.replaceAll("-", "+"),
    signature.replaceAll("_", "/"),
    signature.replaceAll("-", "+").replaceAll("_", "/"),
  ],
  blanks: [
    `${signature.slice(0, 40)} ${signature.slice(40)}`,
    `${signature.slice(0, 40)}\t${signature.slice(40)}`,
  ],
  "letters of no alphabet": ["!", "~", "*", ",", "%20", "\u00a0", "\u00ff"].map(
    (letter) => signature.slice(0, 20) + letter.replace("%20", "%") + signature.slice(20),
  ),
};

const TEXT = JSON.stringify(claims());
const KID = JSON.stringify(OWN.kid);
const withClaim = (text: string): string => TEXT.replace("{", `{${text},`);

/** Payloads that are invalid even with our signature. */
const PAYLOADS: Readonly<Record<string, readonly (string | Buffer)[]>> = {
  "a name twice": ['"sub":"root"', '"exp":99999999999', '"groups":["admin"]', '"iss":"x"'].map(
    withClaim,
  ),
  "a name twice, one of them escaped": [
    '"su\\u0062":"root"',
    '"\\u0065xp":1',
    '"\\u0073\\u0075\\u0062":"x"',
  ].map(withClaim),
  "a name twice, further in": [withClaim('"act":{"sub":"a","sub":"b"}')],
  "names of the prototype": [
    withClaim('"__proto__":{"groups":["admin"]}'),
    withClaim('"x":{"__proto__":1}'),
  ],
  "no object": [`[${TEXT}]`, JSON.stringify(TEXT), "null", "7", "true", '""', "{}", "[]"],
  "not quite JSON": [
    `${TEXT}x`,
    `${TEXT}{}`,
    `${TEXT}\u0000`,
    `\ufeff${TEXT}`,
    TEXT.replace("{", "{/**/"),
    TEXT.replace(/}$/, ",}"),
    TEXT.replaceAll('"', "'"),
    TEXT.replace("{", '{"x":NaN,'),
    TEXT.replace("{", '{"x":01,'),
  ],
  "not UTF-8": [
    Buffer.from(TEXT.replace("mallory", "mall\u00ffry"), "latin1"),
    Buffer.from(TEXT, "utf16le"),
    Buffer.concat([Buffer.of(0xfe, 0xff), Buffer.from(TEXT)]),
  ],
  "nested too deep": [
    withClaim(`"x":${"[".repeat(40)}${"]".repeat(40)}`),
    withClaim(`"x":${'{"a":'.repeat(40)}1${"}".repeat(40)}`),
  ],
};

/** Ambiguous headers with a valid signature. */
const HEADERS: readonly string[] = [
  `{"alg":"none","alg":"ES256","kid":${KID}}`,
  `{"alg":"ES256","alg":"none","kid":${KID}}`,
  `{"alg":"ES256","a\\u006cg":"none","kid":${KID}}`,
  `{"alg":"ES256","kid":"other","kid":${KID}}`,
  `{"alg":"ES256","kid":${KID},"__proto__":{"alg":"none"}}`,
  `[{"alg":"ES256","kid":${KID}}]`,
  `{"alg":"ES256","kid":${KID}} `.replace(/ $/, "\u0000"),
  `\ufeff{"alg":"ES256","kid":${KID}}`,
];

describe("Sallyport", () => {
  const standing = useTokenGate();

  it("accepts the one spelling", async () => {
    expect((await present(standing().gate, good)).status).toBe(200);
  });

  it.each(Object.entries(SIGNATURES))("refuses a signature with %s", async (_name, texts) => {
    await expectAllRefused(
      standing(),
      texts.map((text) => `${head}.${payload}.${text}`),
    );
  });

  // A space before the token belongs to the scheme (RFC 9110 §11.4), not to the token.
  it.each(["=", " ", "\t", "!", "\u00a0", "%", "."])(
    "refuses %j in header and payload",
    async (extra) => {
      await expectAllRefused(standing(), [
        `${head}${extra}.${payload}.${signature}`,
        `${head}.${extra}${payload}.${signature}`,
        `${head}.${payload}${extra}.${signature}`,
        `${head.slice(0, 4)}${extra}${head.slice(4)}.${payload}.${signature}`,
        `${head}.${payload.slice(0, 4)}${extra}${payload.slice(4)}.${signature}`,
      ]);
    },
  );

  it.each(Object.entries(PAYLOADS))("refuses a payload that has %s", async (_name, payloads) => {
    await expectAllRefused(
      standing(),
      payloads.map((text) => compact(header(), text, own)),
    );
  });

  it.each(HEADERS)("refuses the header %j", async (text) => {
    await expectAllRefused(standing(), [compact(text, claims(), own)]);
  });

  it("refuses more than 8 KiB immediately, and more than the maximum head as a head", async () => {
    const { gate } = standing();
    const of = (size: number): string => compact(header(), claims({ x: "y".repeat(size) }), own);
    const fits = of(5800);
    expect(fits.length).toBeLessThan(8192);
    expect((await present(gate, fits)).status).toBe(200);
    standing().backend.forget();
    await expectAllRefused(standing(), [of(6100), `${good}${"A".repeat(8192)}`, ".".repeat(9000)]);
    const lines = [
      "GET /orders HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${of(20_000)}`,
    ];
    expect((await exchange(gate, request(lines))).last.status).toBe(431);
    expect(gate.exited()).toBe(false);
  });
});

describe("a verifier that is lenient", () => {
  it.each(Object.entries(SIGNATURES))("accepts a signature with %s", async (_name, texts) => {
    for (const text of texts)
      expect(await believes(naive, `${head}.${payload}.${text}`)).toBe(true);
  });

  it.each([
    "a name twice",
    "a name twice, one of them escaped",
    "names of the prototype",
    "nested too deep",
  ])("believes a payload that has %s", async (name) => {
    for (const text of PAYLOADS[name] ?? []) {
      expect(await believes(naive, compact(header(), text, own))).toBe(true);
    }
  });

  it("accepts an ambiguous header, and a token of any size", async () => {
    expect(await believes(naive, compact(HEADERS[0], claims(), own))).toBe(true);
    const huge = compact(header(), claims({ x: "y".repeat(1_000_000) }), own);
    expect(await believes(decoding, huge)).toBe(true);
  });
});
