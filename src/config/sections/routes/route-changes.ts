import { z } from "zod";
import { headerName, isHost, optional, urlPath } from "../../fields.ts";
import { isOwnAnswerHeader, isOwnRequestHeader } from "../../../upstream/headers/header-names.ts";
import {
  listAt,
  type Mapping,
  mappingAt,
  type PathProblem,
  repeated,
  textAt,
  type Written,
} from "../../written.ts";
import type { YamlPath } from "../../../lib/files/positioned-yaml.ts";
import { foldedName } from "../../../lib/http/header-values.ts";

/** The keys of a route that change its requests and responses: path and header fields. */

export function rewrite() {
  const prefix = () =>
    urlPath("plain")
      .refine((path) => !path.endsWith("/"), "must not end with a slash")
      .exactOptional();
  return z.strictObject({
    stripPrefix: prefix().describe("Prefix to remove"),
    addPrefix: prefix().describe("Prefix to add after that"),
    responses: z
      .boolean()
      .exactOptional()
      .describe("Whether to map redirects and cookie paths back; default: if path or Host changes"),
  });
}

/**
 * The characters that Node and every backend accept in a field value (RFC 9110 §5.5), without obsolete bytes above
 * ASCII.
 */
const VALUE = /^[\t\x20-\x7e]*$/;

function changes(refused: (name: string) => boolean) {
  const changeable = () =>
    headerName().refine(
      (name) => !refused(name),
      "must not be a header that frames the message, is hop-by-hop, or belongs to Sallyport",
    );
  const value = () =>
    z.string().regex(VALUE, "must be printable ASCII").describe("Value of the header");
  return z.strictObject({
    set: z
      .record(changeable(), value())
      .default({})
      .describe("Headers to replace, with their values"),
    add: z.record(changeable(), value()).default({}).describe("Headers to add, with their values"),
    remove: z.array(changeable()).default([]).describe("Headers to remove"),
  });
}

/** Whether a text is `host` or `host:port`. */
function isAuthority(text: string): boolean {
  const [, host = "", port = "1"] = /^([^:]+|\[[^\]]+\])(?::(\d{1,5}))?$/.exec(text) ?? [];
  return isHost(host) && Number(port) >= 1 && Number(port) <= 65_535;
}

export function headerKeys() {
  return {
    hostHeader: z
      .string()
      .refine(
        (text) => text === "preserve" || text === "target" || isAuthority(text),
        "must be preserve, target, or the name of a host",
      )
      .default("preserve")
      .describe("Host for the backend: preserve is the client's, target the target's; or a name"),
    requestHeaders: optional("Changes to headers for the backend", changes(isOwnRequestHeader)),
    responseHeaders: optional("Changes to headers for the client", changes(isOwnAnswerHeader)),
  };
}

/** Checks that a route changes no identity header, and no header twice. */
export function headerProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  const { headers, claims } = mappingAt(whole, "identity");
  const callers = new Set(
    [...Object.values(mappingAt(headers)), ...Object.keys(mappingAt(claims))].map((name) =>
      foldedName(textAt(name) ?? ""),
    ),
  );
  const [request = [], ...others] = ["requestHeaders", "responseHeaders"].map((key) =>
    changedNames(route[key], [...at, key]),
  );
  const message = "must not be one of identity.headers, which tell the backend who is calling";
  return [
    ...request
      .filter(({ folded }) => callers.has(folded))
      .map(({ path, of }) => ({ path, of, message })),
    ...[request, ...others].flatMap((names) =>
      repeated(names, ({ folded }) => folded).map(({ path, of }) => ({
        path,
        of,
        message: "must not be changed twice",
      })),
    ),
  ];
}

/** A header that a route changes; its name with `_` as `-`, since CGI backends do not distinguish them. */
interface ChangedName extends Required<Pick<PathProblem, "path" | "of">> {
  readonly folded: string;
}

function changedNames(changes: unknown, path: YamlPath): ChangedName[] {
  return [
    ...["set", "add"].flatMap((key) =>
      Object.keys(mappingAt(changes, key)).map((name): ChangedName => {
        return { path: [...path, key, name], of: "key", folded: foldedName(name) };
      }),
    ),
    ...listAt(changes, "remove").map((name, index): ChangedName => {
      const folded = foldedName(textAt(name) ?? "");
      return { path: [...path, "remove", index], of: "value", folded };
    }),
  ];
}

/** Reports header names that a route uses although `server.underscoreHeaders` drops or rejects them. */
export function underscoreProblems(
  { headers, tokenFrom }: Mapping,
  at: YamlPath,
  { whole }: Written,
): PathProblem[] {
  const policy = textAt(whole, "server", "underscoreHeaders");
  if (policy !== "drop" && policy !== "reject") return [];
  const message = `never arrives with server.underscoreHeaders: ${policy}`;
  const problem = (name: string | undefined, path: YamlPath, of: "key" | "value"): PathProblem[] =>
    name?.includes("_") === true ? [{ path: [...at, ...path], of, message }] : [];
  return [
    ...Object.keys(mappingAt(headers)).flatMap((name) => problem(name, ["headers", name], "key")),
    ...listAt(tokenFrom).flatMap((place, i) =>
      ["header", "apiKey"].flatMap((key) =>
        problem(textAt(place, key), ["tokenFrom", i, key], "value"),
      ),
    ),
  ];
}
