import { z } from "zod";
import {
  absolute,
  claimName,
  duration,
  filePath,
  flag,
  headerName,
  size,
  text,
  whole,
  wholeSeconds,
  settings,
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

function tokenCache() {
  return settings("Cache of verified tokens", {
    entries: whole(1, 10_000_000).default(10_000).describe("Cached tokens in each thread"),
    bytes: size({ min: 1024 })
      .prefault("16MiB")
      .describe(
        "Memory for cached tokens, in all threads together; a token with 200 groups takes 17 KB",
      ),
  });
}

/** Revocation, before tokens end by themselves. */
function revocationSection() {
  return settings("Revocation of tokens before their exp", {
    file: filePath({ readAgainBy: "reader" })
      .exactOptional()
      .describe(`File that lists what is revoked: ${REVOCATION_KEYS.join(", ")}`),
    journal: text()
      .transform(absolute)
      .exactOptional()
      .describe(
        "File that keeps logouts and other revocations across restarts; its directory must be writable",
      ),
    logout: z
      .boolean()
      .exactOptional()
      .describe(
        "Whether POST /api/logout revokes the token that it carries; default: true with browser, else false",
      ),
    users: flag(true).describe(
      "Whether removing or disabling a user revokes the tokens that Sallyport issued to that user",
    ),
  });
}

/** What happens to open connections when a token ends. */
function streamsSection() {
  return settings("What happens to open requests and WebSockets when their token ends", {
    endWithToken: flag(true).describe(
      "Whether they end with their token: WebSockets, downloads, uploads, event streams",
    ),
    grace: duration({ min: 0, max: 3_600_000 })
      .prefault("0s")
      .describe("How long they may continue after exp; never after a revocation"),
  });
}

function tokensSection() {
  return settings("How tokens are signed, and which tokens are accepted", {
    issuer: text().default(OWN_ISSUER).describe("iss of the tokens that Sallyport signs"),
    audience: text().default(AUDIENCE).describe("aud of the tokens that Sallyport signs"),
    lifetime: wholeSeconds({ min: 1_000, max: ONE_YEAR })
      .prefault("5h")
      .describe("Time from iat to exp; nothing extends a token"),
    algorithm: z
      .enum(SIGNING_ALGORITHMS)
      .default(ALGORITHM)
      .describe("Signature algorithm of issued tokens"),
    keys: filePath({ kind: "directory", readAgainBy: "reader" })
      .exactOptional()
      .describe(
        "Directory of PEM or JWK files; without it, Sallyport generates a key at start and warns",
      ),
    cache: tokenCache(),
    jwks: settings(
      "The public keys at /.well-known/jwks.json; the admin listener always serves them",
      {
        publish: flag(false).describe(
          "Whether the main listener serves them, too, without a token",
        ),
      },
    ),
    revocation: revocationSection(),
    streams: streamsSection(),
    assertion: assertionSection(),
    proof: z
      .enum(PROOF_RULES)
      .default("refuse")
      .describe(
        "What happens to tokens that are bound to a key of the client (cnf): refuse, accept with a proof (DPoP, or the TLS certificate), or require, which refuses all others",
      ),
    trusted: z.array(trusted()).default([]).describe("Other issuers whose tokens are accepted"),
    maxBytes: size({ min: 256, max: 1024 ** 2 })
      .prefault("8KiB")
      .describe("Maximum size of a token"),
    errorDescription: flag(false).describe(
      "Whether a 401 says why a token was refused: error_description (RFC 6750 §3)",
    ),
  });
}

/** The claims that an assertion sets itself, and those that would change how it is interpreted. */
const OWN = ["iss", "aud", "sub", "idp", "iat", "exp", "nbf", "jti", "cnf"];

const ONE_HOUR = 3_600_000;

/** The part of `tokens` about assertions for backends. */
function assertionSection() {
  return z
    .strictObject({
      issuer: text().exactOptional().describe("Its iss; default: tokens.issuer"),
      audience: text().describe("Its aud, which must differ from that of tokens"),
      keys: filePath({ kind: "directory", readAgainBy: "reader" })
        .exactOptional()
        .describe(
          "Directory of PEM or JWK files with its own keys; default: the keys in tokens.keys, or else a separate key generated at start",
        ),
      algorithm: z
        .enum(ASYMMETRIC_ALGORITHMS)
        .exactOptional()
        .describe("Its signature algorithm; default: tokens.algorithm"),
      lifetime: wholeSeconds({ min: 5_000, max: ONE_HOUR })
        .prefault("60s")
        .describe("Time from iat to exp; exp is never later than that of the caller's token"),
      header: headerName()
        .refine(
          (name) => name === ASSERTION_HEADER || !isOwnRequestHeader(name),
          "must not be a header that frames the message, is hop-by-hop, or belongs to Sallyport",
        )
        .default(ASSERTION_HEADER)
        .describe("The header that carries it; Sallyport removes this header from client requests"),
      claims: z
        .array(
          claimName().refine(
            (name) => !OWN.includes(name),
            "must not be a claim that the assertion sets itself",
          ),
        )
        .default(["groups"])
        .describe("Claims copied from the caller's token, besides iss, aud, sub, idp, iat and exp"),
    })
    .exactOptional()
    .describe("A short-lived JWT for backends, on routes with assertion: true");
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
