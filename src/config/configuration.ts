import { z } from "zod";
import { usersSection } from "./sections/users.ts";
import { sharedSection } from "./sections/shared.ts";
import { logSection } from "./sections/log.ts";
import { upstreamsSection } from "./sections/upstreams.ts";
import { networksSection, routesSection } from "./sections/routes.ts";
import { identitySection } from "./sections/identity.ts";
import { adminSection } from "./sections/admin.ts";
import { versionSection } from "./sections/version.ts";
import { corsSection } from "./sections/cors.ts";
import { authorizationSection } from "./sections/authorization.ts";
import { serverSection } from "./sections/server.ts";
import { loginSection } from "./sections/login.ts";
import { tokensSection } from "./sections/tokens.ts";

/** The schema of the whole file. The rest of Sallyport uses its output types. */
function fileSchema() {
  return z.strictObject({
    server: serverSection(),
    admin: adminSection(),
    login: loginSection(),
    users: usersSection(),
    tokens: tokensSection(),
    shared: sharedSection().exactOptional(),
    version: versionSection().exactOptional(),
    identity: identitySection(),
    cors: corsSection()
      .exactOptional()
      .describe("Requests from scripts of other origins; default: not allowed"),
    networks: networksSection(),
    authorization: authorizationSection(),
    routes: routesSection(),
    upstreams: upstreamsSection(),
    log: logSection(),
  });
}

let built: ReturnType<typeof buildSchema> | undefined;

/**
 * @returns the schema of a configuration, built once. It converts durations to milliseconds, sizes to bytes, and paths
 * to absolute ones (see `withPathsFrom`), and adds defaults. Rules between keys are in `validate.ts`.
 */
export function configurationSchema() {
  return (built ??= buildSchema());
}

function buildSchema() {
  return fileSchema().transform(({ routes, ...rest }) => ({
    ...rest,
    routes: routes?.map((route) => withNetworks(route, rest.networks)) ?? [
      everythingTo(Object.keys(rest.upstreams)[0] ?? ""),
    ],
  }));
}

type WrittenRoute = NonNullable<z.output<ReturnType<typeof routesSection>>>[number];

/** Replaces names of networks with their ranges. `networkProblems` reports unknown names. */
function withNetworks(
  { allow, deny, ...route }: WrittenRoute,
  networks: Readonly<Record<string, readonly string[]>>,
): WrittenRoute {
  const ranges = (list: readonly string[]): string[] =>
    list.flatMap((entry) => (Object.hasOwn(networks, entry) ? (networks[entry] ?? []) : [entry]));
  return {
    ...route,
    ...(allow === undefined ? {} : { allow: ranges(allow) }),
    ...(deny === undefined ? {} : { deny: ranges(deny) }),
  };
}

function everythingTo(upstream: string): WrittenRoute {
  return {
    name: "default",
    path: "/",
    auth: "required",
    mode: "enforce",
    upstream,
    forwardAuthorization: "strip",
    hostHeader: "preserve",
    paths: "strict",
  };
}

/** A valid configuration. Durations are in milliseconds, sizes in bytes, paths absolute. */
export type Configuration = DeepReadonly<z.output<ReturnType<typeof configurationSchema>>>;

type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;
