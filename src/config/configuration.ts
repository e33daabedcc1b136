import { z } from "zod";
import { server } from "./sections/server-section.ts";
import { admin } from "./sections/admin-section.ts";
import { loginSection } from "./sections/login-section.ts";
import { users } from "./sections/users-section.ts";
import { tokens } from "./sections/tokens-section.ts";
import { shared } from "./sections/shared-section.ts";
import { version } from "./sections/version-section.ts";
import { apiKeys, apiKeysSection } from "./sections/api-keys-section.ts";
import { browser, browserSection } from "./sections/browser-section.ts";
import { decisions, decisionsSection } from "./sections/decisions-section.ts";
import { metadataSection } from "./sections/metadata-section.ts";
import { identity } from "./sections/identity-section.ts";
import { corsSection } from "./sections/cors-section.ts";
import { authorization } from "./sections/authorization-section.ts";
import { networksSection, NOWHERE, routes } from "./sections/routes/routes-section.ts";
import { upstreams } from "./sections/upstreams-section.ts";
import { log } from "./sections/log-section.ts";
import type { Section } from "./written.ts";

/** The sections that are more than a schema, in the order of the file. */
export const SECTIONS: readonly Section[] = [
  server,
  admin,
  users,
  tokens,
  shared,
  version,
  browser,
  decisions,
  apiKeys,
  identity,
  authorization,
  routes,
  upstreams,
  log,
];

/** The schema of the whole file. The rest of Sallyport uses its output types. */
function fileSchema() {
  return z.strictObject({
    server: server.schema(),
    admin: admin.schema(),
    login: loginSection(),
    users: users.schema(),
    tokens: tokens.schema(),
    shared: shared.schema().exactOptional(),
    version: version.schema().exactOptional(),
    browser: browserSection().exactOptional(),
    decisions: decisionsSection().exactOptional(),
    apiKeys: apiKeysSection(),
    metadata: metadataSection().exactOptional(),
    identity: identity.schema(),
    cors: corsSection()
      .exactOptional()
      .describe("Requests from scripts of other origins; default: not allowed"),
    networks: networksSection(),
    authorization: authorization.schema(),
    routes: routes.schema(),
    upstreams: upstreams.schema(),
    log: log.schema(),
  });
}

// A validator that zod compiles (`new Function`) pays for many values. For a configuration it took 11 ms of the start.
z.config({ jitless: true });

let built: ReturnType<typeof buildSchema> | undefined;

/**
 * @returns the schema of a configuration, built once. It converts durations to milliseconds, sizes to bytes, and paths
 * to absolute ones (see `withPathsFrom`), and adds defaults. Rules between keys are in the sections, too.
 */
export function configurationSchema() {
  return (built ??= buildSchema());
}

function buildSchema() {
  return fileSchema().transform(({ routes, tokens, ...rest }) => ({
    ...rest,
    tokens: { ...tokens, revocation: withLogout(tokens.revocation, rest) },
    routes: routes?.map((route) => withNetworks(route, rest.networks)) ?? [
      everythingTo(Object.keys(rest.upstreams)[0] ?? NOWHERE),
    ],
  }));
}

/** Who signs in with a browser signs out, too, and the identity of an API key can be revoked. */
function withLogout<Revocation extends { logout?: boolean }>(
  revocation: Revocation,
  {
    browser: people,
    apiKeys: keys,
  }: { readonly browser?: object; readonly apiKeys: readonly object[] },
): Revocation & { logout: boolean } {
  const preset = people !== undefined || keys.length > 0;
  return { ...revocation, logout: revocation.logout ?? preset };
}

type WrittenRoute = NonNullable<z.output<ReturnType<typeof routes.schema>>>[number];

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
