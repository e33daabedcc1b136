import { z } from "zod";
import { filePath, optional, refuse, text, urlPath } from "../fields.ts";
import { VERSION_FORM } from "../../core/version-source.ts";
import {
  type Environment,
  NO_UPSTREAM,
  type PathProblem,
  textAt,
  unknownName,
  type Written,
} from "../written.ts";

/** The section `version`. */
export const version = { schema: versionSection, rules: [versionProblems] };

function versionSection() {
  return z
    .strictObject({
      text: optional(
        "major.minor.patch",
        z.string().regex(VERSION_FORM, "must have the form major.minor.patch, such as 2.3.1"),
      ),
      env: optional("Environment variable with it", text()),
      file: optional("File with it, read for every request", filePath({ readAgainBy: "request" })),
      upstream: optional("Upstream that returns it as JSON, cached for 10 seconds", text()),
      path: optional("Path there; required with upstream", urlPath("plain")),
      field: optional("Field of the response; default: version", text()),
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
    .describe(
      "The version of your API: one of text, env, file and upstream; default: Sallyport's own",
    );
}

type VersionSource =
  | { readonly text: string }
  | { readonly env: string }
  | { readonly file: string }
  | { readonly upstream: string; readonly path: string; readonly field: string };

function versionProblems({ whole, upstreams }: Written, env: Environment): PathProblem[] {
  const variable = textAt(whole, "version", "env");
  const value = variable === undefined ? undefined : env[variable];
  const upstream = textAt(whole, "version", "upstream");
  const ofUpstream = unknownName(upstream, upstreams, ["version", "upstream"], NO_UPSTREAM);
  if (variable === undefined || (value !== undefined && VERSION_FORM.test(value))) {
    return ofUpstream;
  }
  const message =
    value === undefined
      ? "names an environment variable that is not set"
      : "names an environment variable that is not major.minor.patch";
  return [{ path: ["version", "env"], message }, ...ofUpstream];
}
