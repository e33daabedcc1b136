import { resolve } from "node:path";
import { z } from "zod";
import { isSafeRemoteUrl, SAFE_REMOTE_URL } from "../../lib/http/safe-remote-url.ts";
import { ASYMMETRIC_ALGORITHMS } from "../../tokens/keys/algorithms.ts";
import type { KeySetAddress, TrustedIssuer } from "../../tokens/trusted/trusted-issuer.ts";
import { audience, claimsOfIssuer } from "./claims-of-issuer.ts";
import { duration, filePath, text } from "./fields.ts";

/** The part of `tokens` about other issuers. */

const ONE_WEEK = 7 * 24 * 3_600_000;

/** An address whose answers are trusted. */
function remoteUrl() {
  return text()
    .refine((url) => !url.includes("#"), "must have no fragment: what is behind # is never sent")
    .refine((url) => url.includes("#") || isSafeRemoteUrl(url), SAFE_REMOTE_URL);
}

/** What is needed to ask a server, besides its address. */
function remoteAccess(directory: string) {
  return {
    caFile: filePath(directory, { readAgainBy: "reader" })
      .exactOptional()
      .describe("Authorities that its certificate may come from, instead of Node's; PEM"),
    tokenFile: filePath(directory, { readAgainBy: "request" })
      .exactOptional()
      .describe("Bearer token to show to it; read again when it changes"),
  };
}

function jwks(directory: string) {
  const source = z.strictObject({
    url: remoteUrl().exactOptional().describe("Address of the key set"),
    file: filePath(directory, { readAgainBy: "reader" })
      .exactOptional()
      .describe("File with the key set"),
    ...remoteAccess(directory),
    staleFor: duration({ min: 0, max: ONE_WEEK })
      .exactOptional()
      .describe(
        "How long the last keys stay in use after their life while fetches fail; default: 24h",
      ),
    cacheFile: text()
      .transform((path) => resolve(directory, path))
      .exactOptional()
      .describe("Keeps the fetched keys for the next start; its directory must be writable"),
  });
  return z
    .union([remoteUrl().describe("Address of the key set"), source], {
      error: "must be a URL, or { url, … } or { file }",
    })
    .transform((written) => (typeof written === "string" ? { url: written } : written));
}

/** An issuer other than Sallyport whose tokens are accepted. */
export function trusted(directory: string) {
  return z
    .strictObject({
      issuer: text().describe("Expected iss of the tokens, exactly"),
      audience: audience(),
      discovery: z
        .boolean()
        .default(false)
        .describe(
          "Whether its key set is found by /.well-known/openid-configuration of the issuer",
        ),
      jwks: jwks(directory)
        .exactOptional()
        .describe("Their key set: a URL, { url } or { file }; with discovery, without either"),
      algorithms: z
        .array(z.enum(ASYMMETRIC_ALGORITHMS))
        .min(1)
        .describe("Accepted signature algorithms; none with a shared secret"),
      clockSkew: duration({ min: 0, max: 600_000 })
        .prefault("60s")
        .describe("Tolerated difference of the issuer's clock"),
      ...claimsOfIssuer(),
    })
    .transform(({ discovery, jwks: written = {}, ...rest }, context) => {
      const source = keySetIn(written, discovery, rest.issuer);
      if (typeof source !== "string") return { ...rest, jwks: source };
      const path = Object.keys(written).length === 0 ? [] : ["jwks"];
      context.issues.push({ code: "custom", message: source, input: {}, path });
      return z.NEVER;
    });
}

type Written = KeySetAddress & { readonly file?: string };

/** @returns the source of an issuer's keys, or what is wrong. */
function keySetIn(
  { file, ...address }: Written,
  discovery: boolean,
  issuer: string,
): TrustedIssuer["jwks"] | string {
  const sources = [discovery || undefined, address.url, file].filter((each) => each !== undefined);
  if (sources.length !== 1) return "needs one of discovery: true, jwks.url and jwks.file";
  if (discovery && !isSafeRemoteUrl(issuer)) {
    return "can be discovered only if issuer is an https URL (http is for loopback alone)";
  }
  if (file === undefined) return address;
  return Object.keys(address).length === 0
    ? { file }
    : "has jwks.file, which is not fetched: leave out the other keys of jwks";
}
