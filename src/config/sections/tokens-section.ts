import { z } from "zod";
import {
  absolute,
  claimName,
  duration,
  filePath,
  flag,
  headerName,
  oneOf,
  optional,
  optionalMapping,
  settings,
  size,
  text,
  whole,
  wholeSeconds,
} from "../fields.ts";
import { REVOCATION_KEYS } from "../../core/revocation.ts";
import { ASYMMETRIC_ALGORITHMS, SIGNING_ALGORITHMS } from "../../tokens/keys/algorithms.ts";
import { PROOF_RULES } from "../../core/request/token-verifier.ts";
import { issuerProblems, trusted } from "./trusted-section.ts";
import { ASSERTION_HEADER, isOwnRequestHeader } from "../../upstream/headers/header-names.ts";
import { mappingAt, OWN_ISSUER, type PathProblem, textAt, type Written } from "../written.ts";

/** The section `tokens`: our own tokens, and assertions for backends. */
export const tokens = {
  schema: tokensSection,
  rules: [issuerProblems, assertionKeyProblems],
  atStart: [{ key: "tokens.revocation.journal" }],
};

const AUDIENCE = "sallyport";
const ALGORITHM = "ES256";

const ONE_YEAR = 366 * 24 * 3_600_000;

/** Revocation, before tokens end by themselves. */
function revocationSection() {
  return settings("Revocation of tokens before their exp", {
    file: filePath({ readAgainBy: "reader" })
      .exactOptional()
      .describe(`File that lists what is revoked: ${REVOCATION_KEYS.join(", ")}`),
    journal: text()
      .transform(absolute)
      .exactOptional()
      .describe("File that keeps revocations across restarts; its directory must be writable"),
    logout: optional(
      "Whether POST /api/logout revokes its token; default: true with browser, else false",
      z.boolean(),
    ),
    users: flag(true).describe("Whether removing or disabling a user revokes the user's tokens"),
  });
}

function tokensSection() {
  return settings("How tokens are signed, and which tokens are accepted", {
    issuer: text()
      .default(OWN_ISSUER)
      .describe("iss of Sallyport's own tokens, and realm of challenges"),
    audience: text().default(AUDIENCE).describe("aud of these tokens"),
    lifetime: wholeSeconds({ min: 1_000, max: ONE_YEAR })
      .prefault("5h")
      .describe("Time from iat to exp; nothing extends it"),
    algorithm: oneOf(SIGNING_ALGORITHMS, ALGORITHM).describe("Their signature algorithm"),
    keys: optional(
      "Directory of PEM or JWK files; without it, Sallyport makes a key at start and warns",
      filePath({ kind: "directory", readAgainBy: "reader" }),
    ),
    cache: settings("Cache of verified tokens", {
      entries: whole(1, 10_000_000)
        .default(10_000)
        .describe("Verified tokens to cache, in each thread"),
      bytes: size({ min: 1024 })
        .prefault("16MiB")
        .describe("Memory for them, in all threads; one with 200 groups takes 17 KB"),
    }),
    jwks: settings(
      "The public keys at /.well-known/jwks.json; the admin listener always serves them",
      {
        publish: flag(false).describe(
          "Whether the main listener serves /.well-known/jwks.json, as the admin listener does",
        ),
      },
    ),
    revocation: revocationSection(),
    streams: settings("What happens to open requests and WebSockets when their token ends", {
      endWithToken: flag(true).describe("Whether requests and WebSockets end with their token"),
      grace: duration({ min: 0, max: 3_600_000 })
        .prefault("0s")
        .describe("How long they may continue after exp; never after a revocation"),
    }),
    assertion: assertionSection(),
    proof: oneOf(PROOF_RULES, "refuse").describe(
      "Tokens bound to a client (cnf): refuse them, accept them with their proof, or require them",
    ),
    trusted: z.array(trusted()).default([]).describe("Other issuers whose tokens are accepted"),
    maxBytes: size({ min: 256, max: 1024 ** 2 })
      .prefault("8KiB")
      .describe("Longest token"),
    errorDescription: flag(false).describe(
      "Whether a 401 says why: error_description (RFC 6750 §3)",
    ),
  });
}

/** The claims that an assertion sets itself, and those that would change how it is interpreted. */
const OWN = ["iss", "aud", "sub", "idp", "iat", "exp", "nbf", "jti", "cnf"];

const ONE_HOUR = 3_600_000;

/** The part of `tokens` about assertions for backends. */
function assertionSection() {
  return optionalMapping("A short-lived JWT for backends, on routes with assertion: true", {
    issuer: optional("iss; default: tokens.issuer", text()),
    audience: text().describe("aud, other than tokens.audience"),
    keys: filePath({ kind: "directory", readAgainBy: "reader" })
      .exactOptional()
      .describe("Directory of PEM or JWK files; default: tokens.keys, else a key made at start"),
    algorithm: z
      .enum(ASYMMETRIC_ALGORITHMS)
      .exactOptional()
      .describe("Signature algorithm; default: tokens.algorithm"),
    lifetime: wholeSeconds({ min: 5_000, max: ONE_HOUR })
      .prefault("60s")
      .describe("Time from iat to exp, which is never later than the token's"),
    header: headerName()
      .refine(
        (name) => name === ASSERTION_HEADER || !isOwnRequestHeader(name),
        "must not be a header that frames the message, is hop-by-hop, or belongs to Sallyport",
      )
      .default(ASSERTION_HEADER)
      .describe("Header for it, removed from client requests"),
    claims: z
      .array(
        claimName().refine(
          (name) => !OWN.includes(name),
          "must not be a claim that the assertion sets itself",
        ),
      )
      .default(["groups"])
      .describe("Further claims to copy from the token"),
  });
}

/** Checks that assertions can be signed and verified, and can never be accepted as tokens. */
function assertionKeyProblems({ whole }: Written): PathProblem[] {
  const tokens = mappingAt(whole, "tokens");
  const { assertion } = tokens;
  if (assertion === undefined) return [];
  const path = ["tokens", "assertion"];
  const problems: PathProblem[] = [];
  const add = (problem: PathProblem): void => void problems.push(problem);
  if (textAt(assertion, "audience") === (textAt(tokens, "audience") ?? AUDIENCE)) {
    const message = "is the audience of tokens, too: an assertion could be sent as a token";
    add({ path: [...path, "audience"], message });
  }
  const algorithm = textAt(tokens, "algorithm") ?? ALGORITHM;
  const own = textAt(assertion, "algorithm");
  const keys = textAt(assertion, "keys");
  const shared = keys === undefined && tokens["keys"] !== undefined;
  if (shared && own !== undefined && own !== algorithm) {
    const message = `needs tokens.assertion.keys: the keys of tokens.keys sign ${algorithm}`;
    add({ path: [...path, "algorithm"], message });
  } else if (keys !== undefined && keys === tokens["keys"]) {
    const message = "is the directory of tokens.keys: assertions need keys of their own";
    add({ path: [...path, "keys"], message });
  } else if (own === undefined && algorithm.startsWith("HS")) {
    const message =
      "needs another algorithm: a backend that verifies an HMAC has the key to forge one";
    add({ path, of: "key", message });
  }
  return problems;
}
