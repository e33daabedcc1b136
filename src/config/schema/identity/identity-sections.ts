import { z } from "zod";
import { foldedName } from "../../../lib/http/header-values.ts";
import { belongsToProxy } from "../../../upstream/headers/header-names.ts";
import { REVOCATION_KEYS } from "../../../core/revocation.ts";
import { VERSION_FORM } from "../../../core/version-source.ts";
import { SIGNING_ALGORITHMS } from "../../../tokens/keys/algorithms.ts";
import {
  absolute,
  claimName,
  duration,
  filePath,
  flag,
  headerName,
  refuse,
  size,
  text,
  whole,
  wholeSeconds,
} from "../fields.ts";
import { assertionSection } from "./assertion-section.ts";
import { trusted } from "./trusted-section.ts";
import { urlPath } from "../url-path.ts";

/** The sections about identity: `tokens`, `version`, `identity`. */

const ONE_YEAR = 366 * 24 * 3_600_000;

function tokenCache() {
  return z
    .strictObject({
      entries: whole(1, 10_000_000).default(10_000).describe("Cached tokens in each thread"),
      bytes: size({ min: 1024 })
        .prefault("16MiB")
        .describe(
          "Memory for cached tokens, in all threads together; a token with 200 groups takes 17 KB",
        ),
    })
    .prefault({})
    .describe("Cache of verified tokens");
}

/** Revocation, before tokens end by themselves. */
function revocationSection() {
  return z
    .strictObject({
      file: filePath({ readAgainBy: "reader" })
        .exactOptional()
        .describe(`File that lists what is revoked: ${REVOCATION_KEYS.join(", ")}`),
      journal: text()
        .transform(absolute)
        .exactOptional()
        .describe(
          "File that keeps logouts and other revocations across restarts; its directory must be writable",
        ),
      logout: flag(false).describe("Whether POST /api/logout revokes the token that it carries"),
      users: flag(true).describe(
        "Whether removing or disabling a user revokes the tokens that Sallyport issued to that user",
      ),
    })
    .prefault({})
    .describe("Revocation of tokens before their exp");
}

/** What happens to open connections when a token ends. */
function streamsSection() {
  return z
    .strictObject({
      endWithToken: flag(true).describe(
        "Whether they end with their token: WebSockets, downloads, uploads, event streams",
      ),
      grace: duration({ min: 0, max: 3_600_000 })
        .prefault("0s")
        .describe("How long they may continue after exp; never after a revocation"),
    })
    .prefault({})
    .describe("What happens to open requests and WebSockets when their token ends");
}

export function tokensSection() {
  return z
    .strictObject({
      issuer: text().default("sallyport").describe("iss of the tokens that Sallyport signs"),
      audience: text().default("sallyport").describe("aud of the tokens that Sallyport signs"),
      lifetime: wholeSeconds({ min: 1_000, max: ONE_YEAR })
        .prefault("5h")
        .describe("Time from iat to exp; nothing extends a token"),
      algorithm: z
        .enum(SIGNING_ALGORITHMS)
        .default("ES256")
        .describe("Signature algorithm of issued tokens"),
      keys: filePath({ kind: "directory", readAgainBy: "reader" })
        .exactOptional()
        .describe(
          "Directory of PEM or JWK files; without it, Sallyport generates a key at start and warns",
        ),
      cache: tokenCache(),
      jwks: z
        .strictObject({
          publish: flag(false).describe(
            "Whether the main listener serves them, too, without a token",
          ),
        })
        .prefault({})
        .describe(
          "The public keys at /.well-known/jwks.json; the admin listener always serves them",
        ),
      revocation: revocationSection(),
      streams: streamsSection(),
      assertion: assertionSection(),
      trusted: z.array(trusted()).default([]).describe("Other issuers whose tokens are accepted"),
      maxBytes: size({ min: 256, max: 1024 ** 2 })
        .prefault("8KiB")
        .describe("Maximum size of a token"),
      errorDescription: flag(false).describe(
        "Whether a 401 says why a token was refused: error_description (RFC 6750 §3)",
      ),
    })
    .prefault({})
    .describe("How tokens are signed, and which tokens are accepted");
}

type VersionSource =
  | { readonly text: string }
  | { readonly env: string }
  | { readonly file: string }
  | { readonly upstream: string; readonly path: string; readonly field: string };

export function versionSection() {
  return z
    .strictObject({
      text: z
        .string()
        .regex(VERSION_FORM, "must have the form major.minor.patch, such as 2.3.1")
        .exactOptional()
        .describe("The version itself"),
      env: text().exactOptional().describe("Name of an environment variable with the version"),
      file: filePath({ readAgainBy: "request" })
        .exactOptional()
        .describe("File with the version, read for every request"),
      upstream: text().exactOptional().describe("Name of the upstream that returns the version"),
      path: urlPath("plain").exactOptional().describe("Path at the upstream"),
      field: text().exactOptional().describe("JSON field of its response; default: version"),
    })
    .transform(({ text: fixed, env, file, upstream, path, field }, context): VersionSource => {
      const fromUpstream = upstream ?? path ?? field;
      const given = [fixed, env, file, fromUpstream].filter((source) => source !== undefined);
      if (given.length === 1) {
        if (fixed !== undefined) return { text: fixed };
        if (env !== undefined) return { env };
        if (file !== undefined) return { file };
        if (upstream !== undefined && path !== undefined)
          return { upstream, path, field: field ?? "version" };
      }
      return refuse(
        context,
        "needs one of { text }, { env }, { file } and { upstream, path, field }",
      );
    })
    .describe("The version of your API; default: Sallyport's own version");
}

/** Headers that already have a meaning for the backend, besides those that belong to the proxy. */
const TAKEN =
  /^(?:accept|authorization|content-.*|cookie|date|max-forwards|origin|proxy-.*|range|referer|sec-.*|traceparent|tracestate|user-agent|via|x-auth-client-subject)$/;

function identityHeader() {
  return headerName().refine(
    (name) => !TAKEN.test(foldedName(name)) && !belongsToProxy(name),
    "must not be a header that already has a meaning",
  );
}

export function identitySection() {
  const names = z.strictObject({
    subject: identityHeader().describe("Header for the subject"),
    groups: identityHeader().exactOptional().describe("Header for the groups, separated by commas"),
    issuer: identityHeader().exactOptional().describe("Header for the issuer"),
  });
  const presets = z.enum(["sallyport", "oauth2-proxy", "kube-rbac-proxy"]);
  return z
    .strictObject({
      headers: z
        .union([presets, names], {
          error: "must be sallyport, oauth2-proxy, kube-rbac-proxy or { subject, groups, issuer }",
        })
        .default("sallyport")
        .describe("Headers that tell the backend who is calling"),
      claims: z
        .record(identityHeader(), claimName().describe("Name of the claim"))
        .default({})
        .describe("Further headers, by name, with the claim that each carries"),
    })
    .prefault({})
    .describe("How Sallyport tells the backend who is calling");
}
