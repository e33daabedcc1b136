import { z } from "zod";
import { ACCESS_FIELDS, fieldSource, REQUEST_FIELD_NAMES } from "../../observe/log/access-log.ts";
import { claimName, oneOf, refuse, settings, TOKEN } from "../fields.ts";
import { listAt, mappingAt, type PathProblem, textAt, type Written } from "../written.ts";
import { foldedName } from "../../lib/http/header-values.ts";
import { namesSecret } from "../../observe/log/redaction.ts";

/** Headers that contain secrets although their names do not suggest it. */
const SECRET_HEADERS = new Set(["sec-websocket-protocol", "signature", "x-amz-signature", "dpop"]);

/** Whether a header contains a secret: credentials, cookies, keys, signatures. */
function isSecretHeader(name: string): boolean {
  return SECRET_HEADERS.has(name.toLowerCase()) || namesSecret(name);
}

/** The section `log`. */
export const log = {
  schema: logSection,
  rules: [loggedTokenProblems],
  atStart: [{ key: "log.level" }, { key: "log.format" }, { key: "log.access" }],
};

/** Names that every log store can index. */
const FIELD = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

const OWN: readonly string[] = ACCESS_FIELDS;

const MOST_FIELDS = 32;

/** Names of inherited properties, such as `constructor`, exist in every object and are therefore refused. */
const isPlainName = (name: string): boolean => !(name in {});

function logSection() {
  return settings("The log on standard output", {
    level: oneOf(["debug", "info", "warn", "error"], "info").describe("Lowest level"),
    format: oneOf(["json", "pretty", "auto"], "auto").describe(
      "auto: pretty on a terminal, else json",
    ),
    access: oneOf(["all", "errors", "none"], "all").describe(
      "Requests with an access line; errors: a status of 400 or more",
    ),
    fields: z
      .record(fieldName(), source())
      .refine(
        (fields) => Object.keys(fields).length <= MOST_FIELDS,
        `must not have more than ${MOST_FIELDS} fields`,
      )
      .default({})
      .describe(
        "Further fields of the access line, each with its source: header:User-Agent, claim:tenant, request:scheme, request:tls_version or request:attempts (how often it was sent to a backend). Values are cut at 512 characters, and secrets in them are masked",
      ),
  });
}

function fieldName() {
  return z
    .string()
    .regex(FIELD, "must be a name of letters, digits and _")
    .refine((name) => !OWN.includes(name), "is a field of every access line: choose another name")
    .refine(isPlainName, "is taken: choose another name");
}

function source() {
  const form = "must be header:NAME, claim:NAME or request:NAME, as in header:User-Agent";
  return z
    .string({ error: form })
    .describe(
      "Source of a further field of the access line: header:NAME, claim:NAME, request:scheme, request:tls_version or request:attempts",
    )
    .superRefine((written, context) => {
      const message = problemOf(written);
      if (message !== undefined) refuse(context, message);
    });

  function problemOf(written: string): string | undefined {
    const found = fieldSource(written);
    if (found === undefined) return form;
    if (found.kind === "request") {
      const known = REQUEST_FIELD_NAMES.includes(found.name);
      return known ? undefined : `must be request: with ${REQUEST_FIELD_NAMES.join(", ")}`;
    }
    if (found.kind === "claim") return claimName().safeParse(found.name).error?.issues[0]?.message;
    if (!TOKEN.test(found.name)) return "must be header: with the name of a header";
    return isSecretHeader(found.name)
      ? "names a header that carries a secret, which is never logged"
      : undefined;
  }
}

/** Checks that no field of the access line is a header from which a route reads tokens. */
function loggedTokenProblems({ whole, routes }: Written): PathProblem[] {
  const withTokens = new Set(
    routes
      .flatMap(({ tokenFrom }) => listAt(tokenFrom))
      .flatMap((place) => textAt(place, "header") ?? textAt(place, "apiKey") ?? [])
      .map(foldedName),
  );
  const message = "names a header that tokens are taken from, which is never logged";
  return Object.entries(mappingAt(whole, "log", "fields")).flatMap(([field, written]) => {
    const source = fieldSource(textAt(written) ?? "");
    return source?.kind === "header" && withTokens.has(foldedName(source.name))
      ? [{ path: ["log", "fields", field], message }]
      : [];
  });
}
