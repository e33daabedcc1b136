import { z } from "zod";
import { VERSION_FORM } from "../core/version-source.ts";
import { duration, filePath, size, text, urlPath } from "./fields.ts";

/** The sections about who is asking: `users`, `tokens`, `version`, `identity`. */

const ASYMMETRIC = [
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
] as const;
const ALGORITHMS = [...ASYMMETRIC, "HS256", "HS384", "HS512"] as const;

const ONE_YEAR = 366 * 24 * 3_600_000;

export function usersSection(directory: string) {
  return z
    .array(
      z.strictObject({
        kind: z.literal("file").describe("The kind of store"),
        path: filePath(directory).describe(
          "The users file. Watched; on a broken file the old users stay",
        ),
      }),
    )
    .default([])
    .describe("Where users are looked up, in this order");
}

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
        .describe("Where the key set is fetched"),
      file: filePath(directory).exactOptional().describe("A file that holds the key set"),
    })
    .transform(({ url, file }, context): JwksSource => {
      if (url !== undefined && file === undefined) return { url };
      if (file !== undefined && url === undefined) return { file };
      context.issues.push({ code: "custom", message: "needs one of url and file", input: {} });
      return z.NEVER;
    });
}

const KEY_SET_URL = "must be an https URL without credentials (http is for loopback alone)";

/** Whoever can change the answer can sign tokens, so plain HTTP is for the own machine. */
function isKeySetUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, username, password } = new URL(value);
  const loopback = /^(?:127(?:\.\d+){3}|\[::1\]|localhost)$/.test(hostname);
  const safe = protocol === "https:" || (protocol === "http:" && loopback);
  return safe && username === "" && password === "";
}

export function tokensSection(directory: string) {
  const trusted = z.strictObject({
    issuer: text().describe("iss of the tokens, exactly"),
    audience: text().describe("aud of the tokens"),
    jwks: jwks(directory).describe("Their key set: { url } or { file }"),
    algorithms: z
      .array(z.enum(ASYMMETRIC))
      .min(1)
      .describe("Signature algorithms that are accepted; none with a shared secret"),
    clockSkew: duration({ min: 0, max: 600_000 })
      .prefault("60s")
      .describe("How far the issuer's clock may be off"),
  });
  return z
    .strictObject({
      issuer: text().default("sallyport").describe("iss of the tokens that Sallyport signs"),
      audience: text().default("sallyport").describe("aud of the tokens that Sallyport signs"),
      lifetime: duration({ min: 1_000, max: ONE_YEAR })
        .refine((milliseconds) => milliseconds % 1_000 === 0, "must be whole seconds")
        .prefault("5h")
        .describe("exp - iat; nothing extends a token"),
      algorithm: z.enum(ALGORITHMS).default("ES256").describe("What tokens are signed with"),
      keys: filePath(directory)
        .exactOptional()
        .describe(
          "Directory of PEM or JWK files; without it a key is made at start, with a warning",
        ),
      cache: z
        .strictObject({
          entries: z
            .int()
            .min(1)
            .max(10_000_000)
            .default(10_000)
            .describe("Verified tokens that are remembered"),
        })
        .prefault({})
        .describe("Verified tokens"),
      jwks: z
        .strictObject({
          publish: z
            .boolean()
            .default(false)
            .describe("Whether the main listener answers it, without a token"),
        })
        .prefault({})
        .describe("The public keys at /.well-known/jwks.json; the admin listener always has them"),
      trusted: z.array(trusted).default([]).describe("Tokens of others that are accepted too"),
      maxBytes: size({ min: 256, max: 1024 ** 2 })
        .prefault("8KiB")
        .describe("The longest token that is read"),
    })
    .prefault({})
    .describe("Tokens: how they are signed, and which are accepted");
}

type VersionSource =
  | { readonly text: string }
  | { readonly env: string }
  | { readonly file: string }
  | { readonly upstream: string; readonly path: string; readonly field: string };

export function versionSection(directory: string) {
  return z
    .strictObject({
      text: z
        .string()
        .regex(VERSION_FORM, "must have the form major.minor.patch, such as 2.3.1")
        .exactOptional()
        .describe("The version itself"),
      env: text().exactOptional().describe("Name of the environment variable that holds it"),
      file: filePath(directory)
        .exactOptional()
        .describe("A file that holds it, read for every answer"),
      upstream: text().exactOptional().describe("Name of the upstream that is asked"),
      path: urlPath().exactOptional().describe("The path that is asked there"),
      field: text().exactOptional().describe("The JSON field of the answer; version when left out"),
    })
    .transform(({ text: fixed, env, file, upstream, path, field }, context): VersionSource => {
      const asked = upstream ?? path ?? field;
      const given = [fixed, env, file, asked].filter((source) => source !== undefined);
      if (given.length === 1) {
        if (fixed !== undefined) return { text: fixed };
        if (env !== undefined) return { env };
        if (file !== undefined) return { file };
        if (upstream !== undefined && path !== undefined)
          return { upstream, path, field: field ?? "version" };
      }
      const message = "needs one of { text }, { env }, { file } and { upstream, path, field }";
      context.issues.push({ code: "custom", message, input: {} });
      return z.NEVER;
    })
    .describe("The version of the API behind; without it, Sallyport's own is told");
}

/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Headers with a meaning of their own on the way to the backend: framing, routing, credentials, forwarding. */
const TAKEN =
  /^(?:accept|authorization|connection|content-.*|cookie|date|expect|forwarded|host|http2-settings|keep-alive|max-forwards|origin|proxy-.*|range|referer|sec-.*|te|traceparent|tracestate|trailer|transfer-encoding|upgrade|user-agent|via|x-auth-client-subject|x-forwarded-(?:for|host|port|proto)|x-real-ip|x-request-id)$/;

function headerName() {
  return z
    .string()
    .regex(TOKEN, "must be the name of a header")
    .refine(
      (name) => !TAKEN.test(name.toLowerCase().replaceAll("_", "-")),
      "must not be a header with a meaning of its own",
    );
}

export function identitySection() {
  const names = z.strictObject({
    subject: headerName().describe("Gets the subject of the token"),
    groups: headerName().exactOptional().describe("Gets the groups, separated by commas"),
    issuer: headerName().exactOptional().describe("Gets the issuer"),
  });
  const presets = z.enum(["sallyport", "oauth2-proxy", "kube-rbac-proxy"]);
  return z
    .strictObject({
      headers: z
        .union([presets, names], {
          error: "must be sallyport, oauth2-proxy, kube-rbac-proxy or { subject, groups, issuer }",
        })
        .default("sallyport")
        .describe("The headers that tell the backend who is asking"),
    })
    .prefault({})
    .describe("How the backend learns who is asking");
}
