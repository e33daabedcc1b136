/**
 * Odd times. `exp`, `nbf` and `iat` are numbers (RFC 7519 §2), but JSON has more to offer: `1e400` is infinite and never
 * ends, a text is compared as a number or not at all, a list of one number is taken for the number, and every comparison
 * with what is no number says "no": neither expired nor too early. Here each is a finite number, in a range where seconds
 * are still told apart, or the token is none. Signed by the right key all the same: an issuer can have such a fault, too.
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

/** A payload in which a claim has exactly this text as its value. */
function withValue(name: string, text: string): string {
  const others = JSON.stringify(claims({ [name]: undefined }));
  return compact(header(), others.replace("{", `{"${name}":${text},`), own);
}

/** No numbers, or not such as a clock shows. */
const NEVER: readonly string[] = [
  ...["1e400", "-1e400", "1e309", "1e300", "9007199254740993", "18446744073709551616"],
  ...['"9999999999"', '""', '"never"', '"1e400"', '"Infinity"', '"2099-01-01T00:00:00Z"'],
  ...["null", "true", "false", "[9999999999]", "[]", "{}", '{"valueOf":9999999999}', '["x"]'],
];
/** Numbers, and over. */
const OVER: readonly string[] = ["0", "-0", "-1", "1", "1e-400", "-9999999999", "1.5", "1e9"];
/** What a comparison with the clock, as JavaScript makes it, finds to be still good. */
const BELIEVED: readonly string[] = [
  ...["1e400", "1e309", "1e300", "9007199254740993", "18446744073709551616"],
  ...['"9999999999"', '"never"', '"1e400"', '"Infinity"', '"2099-01-01T00:00:00Z"'],
  ...["[9999999999]", "{}", '{"valueOf":9999999999}', '["x"]'],
];

describe("Sallyport", () => {
  const standing = useTokenGate();

  it("refuses exp that is no time, or over", async () => {
    const tokens = [...NEVER, ...OVER, `${seconds() - 0.5}`].map((text) => withValue("exp", text));
    await expectAllRefused(standing(), [
      ...tokens,
      compact(header(), claims({ exp: undefined }), own),
    ]);
  });

  it.each(["nbf", "iat"])("refuses %s that is no time, or far ahead", async (name) => {
    const ahead = [`${seconds() + 3600}`, "9007199254740991"];
    const tokens = [...NEVER, ...ahead].map((text) => withValue(name, text));
    await expectAllRefused(standing(), tokens);
  });

  it("takes fractions and other spellings of good times", async () => {
    const exp = seconds() + 600;
    const tokens = [`${exp}.5`, `${exp}.0`, `${exp}e0`, `${exp / 10}e1`, `0.${exp}e10`].map(
      (text) => withValue("exp", text),
    );
    tokens.push(...OVER.flatMap((text) => [withValue("nbf", text), withValue("iat", text)]));
    const answers = await presentAll(standing().gate, tokens);
    expect(answers.map(({ status }) => status)).toEqual(tokens.map(() => 200));
  });
});

describe("a verifier that compares whatever came", () => {
  it.each(BELIEVED)("believes exp %s", async (text) => {
    expect(await believes(decoding, withValue("exp", text))).toBe(true);
  });

  it.each(NEVER)("believes nbf %s, unless it is plainly ahead", async (text) => {
    const ahead = Number(JSON.parse(text)) > seconds();
    expect(await believes(decoding, withValue("nbf", text))).toBe(!ahead);
  });
});
