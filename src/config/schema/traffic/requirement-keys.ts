import { z } from "zod";
import type { Requirements } from "../../../core/route/route.ts";
import { claimName, text } from "../fields.ts";

/** The requirements of a route on its callers: `routes[].require`. */

/** RFC 6749 §3.3. */
const SCOPE = /^[!#-[\]-~]+$/;
/** A value with which a claim is compared, by value and type. */
const scalar = () =>
  z.union([text(), z.number(), z.boolean()], {
    error: "must be a text, a number, true or false",
  });

export function requirements() {
  const keys = {
    groups: names("group", text).exactOptional().describe("Groups of the caller"),
    scopes: names("scope", scope)
      .exactOptional()
      .describe("Scopes of the token, in scope or scp: a string separated by spaces, or a list"),
    claims: z
      .array(claim())
      .min(1)
      .exactOptional()
      .describe("Claims of the token; every entry must hold. A list must contain the value"),
    issuers: z
      .array(text())
      .min(1)
      .exactOptional()
      .describe("The token must come from one of these issuers"),
  } satisfies Record<keyof Requirements, z.ZodType>;
  const known = Object.keys(keys)
    .join(", ")
    .replace(/, (?=\w+$)/, " or ");
  return z
    .strictObject(keys)
    .refine((require) => Object.keys(require).length > 0, `must require something: ${known}`);
}

function scope() {
  return z.string().regex(SCOPE, "must be a scope: no blanks, quotes or backslashes");
}

function names(what: string, name: () => z.ZodString) {
  return z
    .strictObject(
      {
        any: z.array(name()).min(1).exactOptional().describe("The caller needs one of these"),
        all: z.array(name()).min(1).exactOptional().describe("The caller needs all of these"),
      },
      {
        error: ({ code, input }) =>
          code === "invalid_type" && (Array.isArray(input) || typeof input === "string")
            ? `must say whether one or every ${what} is needed: write { any: [admin] } or { all: [admin] }`
            : undefined,
      },
    )
    .refine(({ any, all }) => any !== undefined || all !== undefined, "needs any or all");
}

function claim() {
  return z
    .strictObject({
      claim: claimName().describe("Name of the claim; a.b means b in the object a"),
      any: z.array(scalar()).min(1).exactOptional().describe("Its value must be one of these"),
      all: z
        .array(scalar())
        .min(1)
        .exactOptional()
        .describe("Its value must be a list that contains all of these"),
      equals: scalar().exactOptional().describe("Its value must be this"),
    })
    .refine(
      ({ any, all, equals }) => any !== undefined || all !== undefined || equals !== undefined,
      "needs any, all or equals",
    );
}
