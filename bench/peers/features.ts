import { GROUP, ISSUER } from "../setting/tokens.ts";

type Mapping = Readonly<Record<string, unknown>>;

/** The parts of a configuration that features change. */
export interface Described extends Mapping {
  readonly tokens: Mapping;
  readonly routes: readonly Mapping[];
}

/** What features need in addition. */
export interface Surroundings {
  /** The URL of a state server; by default, `shared` names an address where nothing answers. */
  readonly stateServer?: string | undefined;
}

type Change = (described: Described, surroundings: Surroundings) => Described;

/** Returns a URL where nothing answers. */
const DEAD = (scheme: string, user = ""): string => `${scheme}://${user}127.0.0.1:9`;

/** The features that can be switched on, with realistic settings that let the measured request pass. */
const CHANGES = {
  tokenFrom: onRoutes({
    tokenFrom: [
      { header: "Authorization" },
      { cookie: "session" },
      { query: "access_token" },
      { websocketProtocol: true },
    ],
  }),
  claims: onRoutes({
    require: {
      groups: { any: [GROUP] },
      scopes: { all: ["orders:read"] },
      claims: [
        { claim: "tenant.name", any: ["acme", "umbrella"] },
        { claim: "email_verified", equals: true },
      ],
      issuers: [ISSUER],
    },
  }),
  mapping: (described: Described) => ({
    ...described,
    identity: { claims: { "X-Auth-Email": "email", "X-Auth-Tenant": "tenant.name" } },
  }),
  assertion: (described: Described) => ({
    ...onRoutes({ assertion: true })(described),
    tokens: {
      ...described.tokens,
      assertion: { audience: "backend", claims: ["groups", "email"] },
    },
  }),
  rateLimit: onRoutes({ rateLimit: { requests: 1_000_000, within: "1s" } }),
  concurrency: onRoutes({ concurrency: { requests: 1_000, by: "subject" } }),
  // Remote stores after the file: shows what they cost requests that are not logins.
  stores: (described: Described) => ({
    ...described,
    users: [
      ...[described["users"]].flat(),
      {
        kind: "postgres",
        url: `${DEAD("postgres", "u:p@")}/shop`,
        query: "SELECT $1 AS password_hash",
        tls: false,
      },
      {
        kind: "ldap",
        url: DEAD("ldap"),
        startTls: false,
        search: { base: "o=x", filter: "(uid={username})" },
      },
      { kind: "http", url: DEAD("http") },
    ],
  }),
  shared: (described: Described, { stateServer = DEAD("redis") }: Surroundings) => ({
    ...described,
    shared: { kind: "redis", url: stateServer },
  }),
  decisions: (described: Described) => ({
    ...described,
    decisions: { from: ["127.0.0.0/8"] },
  }),
  /** Needs HTTP/2. */
  grpcDecisions: (described: Described) => ({
    ...described,
    decisions: { from: ["127.0.0.0/8"], grpc: true, only: true },
  }),
  proof: (described: Described) => ({
    ...described,
    tokens: { ...described.tokens, proof: "accept" },
  }),
  apiKeys: (described: Described) => ({
    ...onRoutes({ tokenFrom: [{ header: "Authorization" }, { apiKey: "Authorization" }] })(
      described,
    ),
    apiKeys: [{ kind: "file", path: "api-keys.yaml" }],
  }),
  browser: (described: Described) => ({ ...described, browser: { page: { title: "Orders" } } }),
  revocation: (described: Described) => ({
    ...described,
    tokens: { ...described.tokens, revocation: { journal: "revoked.journal" } },
  }),
} satisfies Record<string, Change>;

export type Feature = keyof typeof CHANGES;

export const FEATURES = Object.keys(CHANGES).filter(isFeature);

/** Parses a list of features. @param list names separated by commas. @throws Error for an unknown name. */
export function featuresIn(list: string): Feature[] {
  const names = list.split(",").filter((name) => name !== "");
  const unknown = names.find((name) => !isFeature(name));
  if (unknown !== undefined) throw new Error(`no feature ${unknown}: ${FEATURES.join(", ")}`);
  return names.filter(isFeature);
}

export function withFeatures(
  described: Described,
  features: readonly Feature[],
  surroundings: Surroundings,
): Described {
  return features.reduce((so, feature) => CHANGES[feature](so, surroundings), described);
}

function isFeature(name: string): name is Feature {
  return Object.hasOwn(CHANGES, name);
}

function onRoutes(keys: Mapping): (described: Described) => Described {
  return (described) => ({
    ...described,
    routes: described.routes.map((route) => ({ ...route, ...keys })),
  });
}
