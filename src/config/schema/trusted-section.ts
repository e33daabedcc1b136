import { z } from "zod";
import { ASYMMETRIC_ALGORITHMS } from "../../tokens/keys/algorithms.ts";
import { duration, filePath, text } from "./fields.ts";

/** The part of `tokens` about other issuers. */

type JwksSource = { readonly url: string } | { readonly file: string };

function jwks(directory: string) {
  return z
    .strictObject({
      url: text()
        .refine(isKeySetUrl, KEY_SET_URL)
        .refine(
          (url) => !url.includes("#"),
          "must have no fragment: what is behind # is never sent",
        )
        .exactOptional()
        .describe("Address of the key set"),
      file: filePath(directory, { readAgainBy: "reader" })
        .exactOptional()
        .describe("File with the key set"),
    })
    .transform(({ url, file }, context): JwksSource => {
      if (url !== undefined && file === undefined) return { url };
      if (file !== undefined && url === undefined) return { file };
      context.issues.push({ code: "custom", message: "needs one of url and file", input: {} });
      return z.NEVER;
    });
}

const KEY_SET_URL = "must be an https URL without credentials (http is for loopback alone)";

/** Whoever can change the response can sign tokens, so plain HTTP is for the loopback only. */
function isKeySetUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, username, password } = new URL(value);
  const loopback = /^(?:127(?:\.\d+){3}|\[::1\]|localhost)$/.test(hostname);
  const safe = protocol === "https:" || (protocol === "http:" && loopback);
  return safe && username === "" && password === "";
}

/** An issuer other than Sallyport whose tokens are accepted. */
export function trusted(directory: string) {
  return z.strictObject({
    issuer: text().describe("Expected iss of the tokens, exactly"),
    audience: text().describe("Expected aud of the tokens"),
    jwks: jwks(directory).describe("Their key set: { url } or { file }"),
    algorithms: z
      .array(z.enum(ASYMMETRIC_ALGORITHMS))
      .min(1)
      .describe("Accepted signature algorithms; none with a shared secret"),
    clockSkew: duration({ min: 0, max: 600_000 })
      .prefault("60s")
      .describe("Tolerated difference of the issuer's clock"),
  });
}
