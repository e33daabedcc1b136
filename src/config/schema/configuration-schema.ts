import { z } from "zod";
import { corsSection } from "./cors-section.ts";
import { identitySection, tokensSection, versionSection } from "./identity-sections.ts";
import { adminSection } from "./admin-section.ts";
import { loginSection, logSection, serverSection } from "./server-sections.ts";
import { routesSection, upstreamsSection } from "./traffic-sections.ts";
import { usersSection } from "./users-section.ts";

/** The schema of the whole file. Its output types are those that the rest of Sallyport uses. */
function fileSchema(directory: string) {
  return z.strictObject({
    server: serverSection(directory),
    admin: adminSection(),
    login: loginSection(),
    users: usersSection(directory),
    tokens: tokensSection(directory),
    version: versionSection(directory).exactOptional(),
    identity: identitySection(),
    cors: corsSection()
      .exactOptional()
      .describe("Requests of scripts from other origins; default: none"),
    routes: routesSection(),
    upstreams: upstreamsSection(directory),
    log: logSection(),
  });
}

/**
 * @param directory the base of relative paths.
 * @returns the schema of a configuration: durations become milliseconds, sizes bytes, paths absolute, and defaults are
 * filled in. Rules that involve several keys are in `rules.ts`.
 */
export function configurationSchema(directory: string) {
  return fileSchema(directory).transform(({ routes, ...rest }) => ({
    ...rest,
    routes: routes ?? [everythingTo(Object.keys(rest.upstreams)[0] ?? "")],
  }));
}

type WrittenRoute = NonNullable<z.output<ReturnType<typeof routesSection>>>[number];

function everythingTo(upstream: string): WrittenRoute {
  return {
    name: "default",
    path: "/",
    auth: "required",
    mode: "enforce",
    upstream,
    forwardAuthorization: "strip",
    hostHeader: "preserve",
  };
}

/** A valid configuration. Durations are in milliseconds, sizes in bytes, paths absolute. */
export type Configuration = DeepReadonly<z.output<ReturnType<typeof configurationSchema>>>;

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;
