import { z } from "zod";
import type { Configuration } from "../configuration.ts";
import { text, TOKEN, wholeSeconds } from "../fields.ts";
import {
  listAt,
  mappingAt,
  type PathProblem,
  type Section,
  textAt,
  type Written,
} from "../written.ts";

/** The section `browser`: people who sign in with a browser. */
export const browser: Section = { rules: [browserProblems], rulesOfValid: [lifetimeProblems] };

export const OWN_PATH = "/_sallyport";

const ONE_YEAR = 366 * 24 * 3_600_000;

export function browserSection() {
  return z
    .strictObject({
      cookie: z
        .string()
        .regex(TOKEN, "must be the name of a cookie")
        .refine(
          (name) => name.startsWith("__Host-"),
          "must begin with __Host-: no other host and no page without TLS can set such a cookie",
        )
        .default("__Host-sallyport")
        .describe(
          "Cookie that holds the token: Secure, HttpOnly, SameSite=Lax, for this host alone",
        ),
      lifetime: wholeSeconds({ min: 1_000, max: ONE_YEAR })
        .exactOptional()
        .describe(
          "Time until people must sign in again, at most tokens.lifetime, which is the default",
        ),
      page: z
        .union([
          z.literal("off"),
          z.strictObject({
            title: text().default("Sallyport").describe("Name of what is protected"),
            message: text().exactOptional().describe("Whom to ask for access, for example"),
          }),
        ])
        .exactOptional()
        .describe("What the pages show; off: no pages, the envelope for everybody"),
    })
    .describe(
      "People with browsers: a sign-in page, and a cookie that holds the same token that POST /api/authenticate returns. Default: none",
    );
}

/** Rules between `browser` and what stands beside it. */
function browserProblems({ whole, routes }: Written): PathProblem[] {
  if (whole["browser"] === undefined) return [];
  const problems: PathProblem[] = [];
  if (listAt(whole, "users").length === 0) {
    problems.push({ path: ["browser"], of: "key", message: "needs users who can sign in" });
  }
  if (mappingAt(whole, "tokens", "revocation")["logout"] === false) {
    const message = "must not be false with browser: signing out would end no token";
    problems.push({ path: ["tokens", "revocation", "logout"], message });
  }
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
