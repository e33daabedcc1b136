/** The OpenAPI description of Sallyport's own endpoints on the main listener. */
import type { Configuration } from "../config/configuration.ts";
import type { LoginAnswer } from "../core/login.ts";
import { type ErrorCode, errorRow } from "../core/request/errors.ts";
import { AUTHORIZATION, type TokenPlace, TokenPlaces } from "../core/request/token-place.ts";
import { VERSION_FORM } from "../core/version-source.ts";
import { keysOf } from "../lib/keys-of.ts";
import {
  AUTHENTICATE_PATH,
  LOGIN_ERRORS,
  type LoginRequest,
} from "../server/endpoints/authenticate.ts";
import { keySetEndpoint } from "../server/endpoints/key-set-endpoint.ts";
import { logoutEndpoint } from "../server/endpoints/logout.ts";
import { fixedVersion, versionEndpoint } from "../server/endpoints/version-endpoint.ts";
import type { Endpoint } from "../server/request/gate.ts";
import { endpointPlacesOf } from "./gate/from-configuration.ts";
import { metadataFor } from "./gate/own-addresses.ts";

type Json = Readonly<Record<string, unknown>>;

/** What is said about all methods of an endpoint. */
interface Description {
  readonly summary: string;
  /** The schema of a successful answer. */
  readonly answer: keyof typeof SCHEMAS;
  /** The schema of the request's body, if it has one. */
  readonly body?: keyof typeof SCHEMAS;
  /** The refusals of its own, besides those of a token that is needed. */
  readonly refusals?: readonly ErrorCode[];
}

const TEXT = { type: "string" };
const TEXTS = { type: "array", items: TEXT };
const TIME = { type: "string", format: "date-time" };
const FILLED = { type: "string", minLength: 1 };
const LOGIN = { username: FILLED, password: FILLED } satisfies Record<keyof LoginRequest, Json>;

const SCHEMAS = {
  Envelope: members({ id: { type: "integer" }, message: TEXT, success: { type: "boolean" } }),
  Refusal: extended({ success: { type: "boolean", const: false } }),
  LoginRequest: members(LOGIN),
  LoginAnswer: extended({ token: TEXT } satisfies Record<keyof LoginAnswer, Json>),
  Version: extended({ version: { type: "string", pattern: VERSION_FORM.source } }),
  Session: extended({ username: TEXT, groups: TEXTS, expires: TIME }),
  KeySet: extended({ keys: { type: "array", items: members({ kty: TEXT }) } }),
  // RFC 9728; some have more members.
  ResourceMetadata: members({ resource: TEXT, bearer_methods_supported: TEXTS }),
};

const LOGIN_REFUSALS: readonly ErrorCode[] = [...keysOf(LOGIN_ERRORS), "keys_unusable"];

/** By the names of endpoints. Those for people with browsers are left out. */
const DESCRIPTIONS: Readonly<Record<string, Description>> = {
  authenticate: {
    summary: "Exchanges a name and a password for a token",
    answer: "LoginAnswer",
    body: "LoginRequest",
    refusals: LOGIN_REFUSALS,
  },
  logout: { summary: "Revokes the token", answer: "Envelope", refusals: ["forbidden"] },
  version: { summary: "Version of the API", answer: "Version", refusals: ["version_unavailable"] },
  jwks: { summary: "Public keys (RFC 7517)", answer: "KeySet" },
  resource_metadata: { summary: "Where tokens come from (RFC 9728)", answer: "ResourceMetadata" },
  sign_in: {
    summary: "Sets the cookie of a session. Needs Origin or Sec-Fetch-Site, as browsers send them",
    answer: "Envelope",
    body: "LoginRequest",
    refusals: [...LOGIN_REFUSALS, "cross_site", "forbidden"],
  },
  browser_session: { summary: "Who is signed in, and until when", answer: "Session" },
};

/** Returns the OpenAPI document of a configuration. @param version Sallyport's own. */
export function openApi(configuration: Configuration, version: string): Json {
  const { listen, tls } = configuration.server;
  const endpoints = endpointsOf(configuration);
  const schemes = endpoints.flatMap(([, endpoint]) => placesOf(endpoint).map(schemeOf));
  const paths = endpoints.map(([path, endpoint]) => {
    const all = endpoint.methods.map((method) => operation(endpoint, method.toLowerCase()));
    return [path, Object.fromEntries(all)] as const;
  });
  const host = { default: `localhost:${listen.port}` };
  return {
    openapi: "3.1.0",
    info: { title: "Sallyport", version },
    servers: [{ url: `${tls.mode === "off" ? "http" : "https"}://{host}`, variables: { host } }],
    paths: Object.fromEntries(paths),
    components: { schemas: SCHEMAS, securitySchemes: Object.fromEntries(schemes) },
  };
}

type Described = Pick<Endpoint, "name" | "methods" | "auth" | "tokenFrom">;

/** Returns the endpoints for programs, by path, as the gate has them. */
function endpointsOf(configuration: Configuration): (readonly [string, Described])[] {
  const { browser, server, tokens, users } = configuration;
  const { issuer, revocation, jwks } = tokens;
  const tokenFrom = endpointPlacesOf(configuration);
  const revoke = (): Promise<void> => Promise.resolve();
  const open = { methods: ["POST"], auth: "none" } as const;
  const all: (readonly [string, Described])[] = [
    [AUTHENTICATE_PATH, { name: "authenticate", ...open }],
    ...versionEndpoint(fixedVersion(""), tokenFrom),
    ...(revocation.logout ? [logoutEndpoint({ issuer, revoke, tokenFrom })] : []),
    ...(jwks.publish ? [keySetEndpoint(() => [])] : []),
    ...(metadataFor(configuration)?.endpoints ?? []),
  ];
  if (browser === undefined) return all;
  if (users.length > 0) all.push([`${server.ownPath}/login`, { name: "sign_in", ...open }]);
  const cookie = new TokenPlaces([{ cookie: browser.cookie }]);
  const needed = { auth: "required", tokenFrom: cookie } as const;
  const session = { name: "browser_session", methods: ["GET", "HEAD"], ...needed };
  return [...all, [`${server.ownPath}/session`, session]];
}

/** Returns an operation behind its method. */
function operation(endpoint: Described, method: string): readonly [string, Json] {
  const described = DESCRIPTIONS[endpoint.name];
  if (described === undefined) throw new Error(`${endpoint.name} is not described`);
  const { summary, answer, body, refusals = [] } = described;
  const places = placesOf(endpoint);
  const codes = new Set(refusals);
  if (places.length > 0) codes.add("unauthenticated").add("invalid_token").add("keys_unusable");
  const changes = method === "post" || method === "delete";
  if (changes && places.some((place) => "cookie" in place)) codes.add("cross_site");
  const answerOf = (description: string, schema: keyof typeof SCHEMAS): Json =>
    method === "head" ? { description } : { description, content: jsonOf(schema) };
  const byStatus = Map.groupBy(codes, (code) => errorRow(code).status);
  const refused = [...byStatus].map(([status, list]) => {
    const messages = new Set(list.map((code) => errorRow(code).message));
    return [status, answerOf([...messages].join(". Or: "), "Refusal")];
  });
  const said = {
    summary,
    security: places.map((place) => ({ [schemeOf(place)[0]]: [] })),
    ...(body === undefined ? {} : { requestBody: { required: true, content: jsonOf(body) } }),
    responses: {
      200: answerOf(summary, answer),
      ...Object.fromEntries(refused),
      default: answerOf("A refusal that any request can get", "Refusal"),
    },
  };
  return [method, said];
}

function placesOf({ auth, tokenFrom }: Described): readonly TokenPlace[] {
  return auth === "none" ? [] : (tokenFrom?.list ?? [{ header: AUTHORIZATION }]);
}

/** Returns the name of a security scheme, and the scheme. */
function schemeOf(place: TokenPlace): readonly [string, Json] {
  const isKey = "apiKey" in place;
  const [kind = "", name = ""] = Object.entries(place)[0]?.map(String) ?? [];
  if (name.toLowerCase() === AUTHORIZATION) {
    const scheme = { type: "http", scheme: "bearer", bearerFormat: isKey ? "sp_…" : "JWT" };
    return [isKey ? "apiKey" : "bearer", scheme];
  }
  const scheme = { type: "apiKey", in: isKey ? "header" : kind, name };
  return [`${kind}-${name}`.replaceAll(/[^\w.-]/g, "_"), scheme];
}

function members(properties: Json): Json {
  return { type: "object", properties, required: Object.keys(properties) };
}

/** The envelope with further members. */
function extended(properties: Json): Json {
  return { allOf: [refTo("Envelope"), members(properties)] };
}

function jsonOf(schema: keyof typeof SCHEMAS): Json {
  return { "application/json": { schema: refTo(schema) } };
}

function refTo(schema: string): Json {
  return { $ref: `#/components/schemas/${schema}` };
}
