import { z } from "zod";
import { identitySection, tokensSection, usersSection, versionSection } from "./schema-identity.ts";
import { adminSection } from "./schema-admin.ts";
import { loginSection, logSection, serverSection } from "./schema-server.ts";
import { routesSection, upstreamsSection } from "./schema-traffic.ts";

/** The whole file as it is written; output types are what the rest of Sallyport works with. */
function fileSchema(directory: string) {
  return z.strictObject({
    server: serverSection(directory),
    admin: adminSection(),
    login: loginSection(),
    users: usersSection(directory),
    tokens: tokensSection(directory),
    version: versionSection(directory).exactOptional(),
    identity: identitySection(),
    routes: routesSection(),
    upstreams: upstreamsSection(directory),
    log: logSection(),
  });
}

/**
 * @param directory where relative paths start.
 * @returns the schema of a configuration: durations become milliseconds, sizes bytes, paths absolute, defaults are put
 *   in. What concerns several keys at once is in `rules.ts`.
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
  };
}

/** A configuration that was found valid. Durations in milliseconds, sizes in bytes, paths absolute. */
export type Configuration = DeepReadonly<z.output<ReturnType<typeof configurationSchema>>>;

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;
