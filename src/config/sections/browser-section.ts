import { z } from "zod";
import type { Configuration } from "../configuration.ts";
import {
  claimName,
  filePath,
  flag,
  mapping,
  name,
  oneOf,
  optional,
  refuse,
  remoteAccess,
  remoteUrl,
  text,
  TOKEN,
  wholeSeconds,
} from "../fields.ts";
import { personRequirements } from "./routes/route-access.ts";
import {
  listAt,
  mappingAt,
  type PathProblem,
  repeated,
  type Section,
  textAt,
  valueAt,
  type Written,
} from "../written.ts";

/** The section `browser`: people who sign in with a browser. */
export const browser: Section = {
  rules: [browserProblems, ownPathProblems],
  rulesOfValid: [lifetimeProblems],
};

export const OWN_PATH = "/_sallyport";

/** A page is one request of 12 KiB at most. */
const LARGEST_LOGO = 5 * 1_024;

const ONE_YEAR = 366 * 24 * 3_600_000;

export function browserSection() {
  return mapping("People with browsers: a sign-in page, and a cookie with a token", {
    cookie: z
      .string()
      .regex(TOKEN, "must be the name of a cookie")
      .refine(
        (name) => name.startsWith("__Host-"),
        "must begin with __Host-: no other host and no page without TLS can set such a cookie",
      )
      .default("__Host-sallyport")
      .describe("Cookie that holds the token, for this host alone"),
    lifetime: wholeSeconds({ min: 1_000, max: ONE_YEAR })
      .exactOptional()
      .describe("Time until people must sign in again; default and maximum: tokens.lifetime"),
    page: z
      .union([
        z.literal("off"),
        z.strictObject({
          title: text().default("Sallyport").describe("Name of what is protected"),
          message: optional("Whom to ask for access, for example", text()),
          logo: filePath({ maxBytes: LARGEST_LOGO })
            .exactOptional()
            .describe("Picture above the title: SVG, PNG, JPEG or WebP, 5 KiB at most"),
        }),
      ])
      .exactOptional()
      .describe("off: no pages, the envelope for everybody"),
    providers: z.array(provider()).default([]).describe("OpenID providers"),
  });
}

function provider() {
  const { caFile } = remoteAccess();
  return z
    .strictObject({
      name: name().describe("Name in paths, metrics, log and the claim idp"),
      label: optional("Text on the button; default: the name", text()),
      issuer: remoteUrl().describe("Issuer, which has a discovery document"),
      caFile,
      clientId: text().describe("Client id"),
      clientSecret: text()
        .exactOptional()
        .meta({ writeOnly: true })
        .describe("Client secret; use ${file:…}"),
      clientKeyFile: optional(
        "Key that signs instead of a secret (private_key_jwt), PEM or JWK; with neither, the client is public",
        filePath({ secret: true }),
      ),
      scopes: z
        .array(text().refine((scope) => !/\s/.test(scope), "must be a scope: no blanks"))
        .default(["openid", "email", "profile"])
        .refine((scopes) => scopes.includes("openid"), "must include openid")
        .describe("Scopes to ask for"),
      claims: z
        .strictObject({
          subject: optional("Claim with the name; default: sub", claimName()),
          groups: optional("Claim with the groups; default: groups", claimName()),
        })
        .prefault({})
        .describe("Claims of the ID token, else of the UserInfo endpoint, that make the caller"),
      require: optional("Who may sign in; others get a page with 403", personRequirements()),
      automatic: flag(false).describe(
        "Whether navigations without a session go there at once; only with one provider and no users",
      ),
      logout: oneOf(["local", "provider"], "local").describe(
        "Where signing out ends the session: here, or at the provider, too",
      ),
    })
    .transform((written, context) =>
      written.clientSecret !== undefined && written.clientKeyFile !== undefined
        ? refuse(context, "has clientSecret and clientKeyFile: one of them identifies Sallyport")
        : written,
    );
}

/** Rules between `browser` and what stands beside it. */
function browserProblems({ whole }: Written): PathProblem[] {
  if (whole["browser"] === undefined) return [];
  const providers = listAt(whole, "browser", "providers");
  const users = listAt(whole, "users");
  const problems: PathProblem[] = repeated(
    providers.map((each, index) => ({ name: textAt(each, "name"), index })),
    (each) => each.name,
  ).map(({ index }) => ({
    path: ["browser", "providers", index, "name"],
    message: "is the name of an earlier provider",
  }));
  if (users.length === 0 && providers.length === 0) {
    const message = "needs users or providers: nobody could sign in";
    problems.push({ path: ["browser"], of: "key", message });
  }
  for (const [index, each] of providers.entries()) {
    if (valueAt(each, ["automatic"]) !== true) continue;
    if (users.length === 0 && providers.length === 1) continue;
    const message = "must not be true beside users or another provider: people could not choose";
    problems.push({ path: ["browser", "providers", index, "automatic"], message });
  }
  if (mappingAt(whole, "tokens", "revocation")["logout"] === false) {
    const message = "must not be false with browser: signing out would end no token";
    problems.push({ path: ["tokens", "revocation", "logout"], message });
  }
  if (textAt(whole, "tokens", "proof") === "require") {
    const message = "must not be require with browser: a cookie proves no possession of a key";
    problems.push({ path: ["tokens", "proof"], message });
  }
  return problems;
}

/** No route may be below the prefix of our own addresses, which are never forwarded. */
function ownPathProblems({ whole, routes }: Written): PathProblem[] {
  if (whole["browser"] === undefined && whole["decisions"] === undefined) return [];
  const problems: PathProblem[] = [];
  const own = textAt(whole, "server", "ownPath") ?? OWN_PATH;
  for (const [index, route] of routes.entries()) {
    for (const key of ["path", "exact"]) {
      const path = textAt(route, key) ?? "";
      if (path !== own && !path.startsWith(`${own}/`)) continue;
      const message = `is below ${own} (server.ownPath), which is never forwarded`;
      problems.push({ path: ["routes", index, key], message });
    }
  }
  return problems;
}

/** A rotation keeps a key as long as `tokens.lifetime` says. */
function lifetimeProblems({ browser: section, tokens }: Configuration): PathProblem[] {
  if ((section?.lifetime ?? 0) <= tokens.lifetime) return [];
  const message =
    "must not be longer than tokens.lifetime: the rotation of keys would end sessions";
  return [{ path: ["browser", "lifetime"], message }];
}
