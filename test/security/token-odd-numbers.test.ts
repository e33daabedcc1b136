/**
 * Odd times. `exp`, `nbf` and `iat` are numbers (RFC 7519 §2), but JSON allows more: `1e400` is infinite and never
 * ends, a string is compared as a number or not at all, a list of one number counts as that number, and every
 * comparison with something that is not a number is false: neither expired nor too early. Here each must be a finite
 * number, in a range with a precision of seconds, or the text is not a token, even if it is signed with the right
 * key: an issuer can have such a bug, too.
 */
import { describe, expect, it } from "vitest";
import { byKey, compact } from "../support/compact-token.ts";
import { believes, decoding } from "../support/naive-verifiers.ts";
import {
  claims,
  expectAllRefused,
  header,
  OWN,
  presentAll,
  seconds,
  useTokenGate,
} from "../support/token-gate.ts";

const own = byKey(OWN.privateKey);

/** Returns a payload in which a claim has exactly this text as its value. */
function withValue(name: string, text: string): string {
  const others = JSON.stringify(claims({ [name]: undefined }));
  return compact(header(), others.replace("{", `{"${name}":${text},`), own);
}

/** Not numbers, or not numbers that a clock can show. */
const NEVER: readonly string[] = [
  ...["1e400", "-1e400", "1e309", "1e300", "9007199254740993", "18446744073709551616"],
  ...['"9999999999"', '""', '"never"', '"1e400"', '"Infinity"', '"2099-01-01T00:00:00Z"'],
  ...["null", "true", "false", "[9999999999]", "[]", "{}", '{"valueOf":9999999999}', '["x"]'],
];
/** Numbers in the past. */
const OVER: readonly string[] = ["0", "-0", "-1", "1", "1e-400", "-9999999999", "1.5", "1e9"];
/** Values that JavaScript's comparison with the clock finds still valid. */
const BELIEVED: readonly string[] = [
  ...["1e400", "1e309", "1e300", "9007199254740993", "18446744073709551616"],
  ...['"9999999999"', '"never"', '"1e400"', '"Infinity"', '"2099-01-01T00:00:00Z"'],
  ...["[9999999999]", "{}", '{"valueOf":9999999999}', '["x"]'],
];

describe("Sallyport", () => {
  const standing = useTokenGate();

  it("refuses exp that is not a time, or has passed", async () => {
    const tokens = [...NEVER, ...OVER, `${seconds() - 0.5}`].map((text) => withValue("exp", text));
    await expectAllRefused(standing(), [
      ...tokens,
      compact(header(), claims({ exp: undefined }), own),
    ]);
  });

  it.each(["nbf", "iat"])("refuses %s that is not a time, or far in the future", async (name) => {
    const ahead = [`${seconds() + 3600}`, "9007199254740991"];
    const tokens = [...NEVER, ...ahead].map((text) => withValue(name, text));
    await expectAllRefused(standing(), tokens);
  });

  it("accepts fractions and other spellings of valid times", async () => {
    const exp = seconds() + 600;
    const tokens = [`${exp}.5`, `${exp}.0`, `${exp}e0`, `${exp / 10}e1`, `0.${exp}e10`].map(
      (text) => withValue("exp", text),
    );
    tokens.push(...OVER.flatMap((text) => [withValue("nbf", text), withValue("iat", text)]));
    const answers = await presentAll(standing().gate, tokens);
    expect(answers.map(({ status }) => status)).toEqual(tokens.map(() => 200));
  });
});

describe("a verifier that compares any value", () => {
  it.each(BELIEVED)("accepts exp %s", async (text) => {
    expect(await believes(decoding, withValue("exp", text))).toBe(true);
  });

  it.each(NEVER)("accepts nbf %s, unless it is clearly in the future", async (text) => {
    const ahead = Number(JSON.parse(text)) > seconds();
    expect(await believes(decoding, withValue("nbf", text))).toBe(!ahead);
  });
});
