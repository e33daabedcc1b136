import { sign } from "node:crypto";
import { describe, expect, test } from "vitest";
import { encoded, goodClaims, signerOf, tokenOf, verifierFor } from "./fixture.ts";
import { good, keys, parts, refusal } from "./forgery.ts";

describe("a token has exactly one spelling, so that neither cache nor revocation can be bypassed", () => {
  const changed = (part: 0 | 1 | 2, change: (text: string) => string): string => {
    const all = parts();
    all[part] = change(all[part]);
    return all.join(".");
  };
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

  test.each(["=", "==", " ", "\t", "\n", "\r\n", "\u0000", "\u00a0", "\ufeff", "%3D", "."])(
    "with %j before, after or inside",
    async (extra) => {
      for (const part of [0, 1, 2] as const) {
        expect(await refusal(changed(part, (text) => text + extra))).toBe("malformed");
        expect(await refusal(changed(part, (text) => extra + text))).toBe("malformed");
        const inside = changed(part, (text) => text.slice(0, 8) + extra + text.slice(8));
        expect(await refusal(inside)).toBe("malformed");
      }
    },
  );

  test("with + and / for - and _", async () => {
    // A signature with both characters. ECDSA gives a different signature each time.
    let token = good;
    while (!/-[^.]*$/.test(token) || !/_[^.]*$/.test(token)) token = await tokenOf(signerOf(keys));
    const [header, payload, signature = ""] = token.split(".");
    for (const other of [signature.replaceAll("-", "+"), signature.replaceAll("_", "/")]) {
      expect(await refusal(`${header}.${payload}.${other}`)).toBe("malformed");
    }
  });

  test("with other bits after the last byte", async () => {
    // 64 bytes leave four unused bits in the last of 86 characters.
    const [, , signature] = parts();
    const last = alphabet.indexOf(signature.slice(-1));
    for (let bits = 1; bits < 16; bits++) {
      const other = alphabet[last + bits] ?? "";
      const text = signature.slice(0, -1) + other;
      expect(Buffer.from(text, "base64url")).toEqual(Buffer.from(signature, "base64url"));
      expect(await refusal(changed(2, () => text))).toBe("malformed");
    }
  });

  test.each([
    "",
    ".",
    "..",
    "...",
    "a",
    "a.b",
    "a.b.c",
    "a.b.c.d",
    "....",
    "é.é.é",
    "\ud800.\ud800.a",
  ])("%j is not a token", async (text) => {
    expect(await refusal(text)).toBe("malformed");
  });
});

describe("header and payload are each a JSON object that can be read in only one way", () => {
  /** A token with any bytes as header or payload, validly signed by our own key. */
  function signedText(payload: string | Buffer, header?: string): string {
    const { kid, key } = signerOf(keys);
    const head = encoded(header ?? { alg: "ES256", kid });
    const input = `${head}.${Buffer.from(payload).toString("base64url")}`;
    const signature = sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
    return `${input}.${signature.toString("base64url")}`;
  }
  const claims = JSON.stringify(goodClaims);

  test("with ordinary content", async () => {
    const result = await verifierFor(keys).verifier.verify(signedText(claims));
    expect(result).toMatchObject({ subject: "alice" });
  });

  test.each([
    ["a claim twice", claims.replace("{", '{"sub":"root",')],
    ["a claim twice, once escaped", claims.replace("{", '{"su\\u0062":"root",')],
    ["__proto__", claims.replace("{", '{"__proto__":{"groups":["admin"]},')],
    ["exp without end", claims.replace(/"exp":\d+/, '"exp":1e400')],
    ["nbf without beginning", claims.replace("{", '{"nbf":-1e400,')],
    ["a list", `[${claims}]`],
    ["a text", JSON.stringify(claims)],
    ["null", "null"],
    ["a byte order mark", `\ufeff${claims}`],
    ["something behind it", `${claims}x`],
    ["a NUL behind it", `${claims}\u0000`],
    ["a comment", claims.replace("{", "{/**/")],
    ["too deep", claims.replace("{", `{"x":${"[".repeat(50)}${"]".repeat(50)},`)],
  ])("%s", async (_name, payload) => {
    expect(await refusal(signedText(payload))).toBe("malformed");
  });

  test("bytes that are not UTF-8", async () => {
    const bytes = Buffer.from(claims.replace("alice", "al\u00ffce"), "latin1");
    expect(await refusal(signedText(bytes))).toBe("malformed");
  });

  test("a header that names the algorithm twice", async () => {
    const { kid } = signerOf(keys);
    const header = `{"alg":"none","alg":"ES256","kid":${JSON.stringify(kid)}}`;
    expect(await refusal(signedText(claims, header))).toBe("malformed");
    expect(await refusal(signedText(claims, `[${header}]`))).toBe("malformed");
  });
});
