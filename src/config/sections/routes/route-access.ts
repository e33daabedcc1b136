import type { TokenPlace } from "../../../core/request/token-place.ts";
import { z } from "zod";
import { claimName, headerName, oneOf, optional, refuse, text, TOKEN } from "../../fields.ts";
import {
  type Mapping,
  listAt,
  mappingAt,
  type PathProblem,
  textAt,
  unknownIssuers,
  unknownName,
  type Written,
} from "../../written.ts";
import { foldedName } from "../../../lib/http/header-values.ts";
import { isSpiffeId } from "../../../server/tls/client-certificate.ts";
import { API_KEY_ISSUER } from "../../../tokens/api-keys/api-keys.ts";
import type { YamlPath } from "../../../lib/files/positioned-yaml.ts";

/** The keys of a route about its callers: tokens, requirements, authorization, assertions. */

/** The keys that concern the callers. */
export function accessKeys() {
  return {
    auth: oneOf(["required", "optional", "none", "certificate"], "required").describe(
      "Whether a token is required; optional refuses invalid ones only, none makes the route public, certificate takes the client certificate instead",
    ),
    tokenFrom: tokenPlaces().exactOptional(),
    mode: oneOf(["enforce", "monitor"], "enforce").describe(
      "monitor counts what it would refuse, and forwards it without identity headers",
    ),
    require: optional("Requirements on the caller, all of which must hold (403)", requirements()),
  };
}

/** Fields that frame or route the message, that contain more than one value, or that mean something else to everybody. */
const NO_PLACE =
  /^(?:accept|accept-.*|access-control-.*|baggage|cache-control|connection|content-.*|cookie|date|expect|forwarded|from|host|if-.*|keep-alive|link|max-forwards|origin|pragma|prefer|priority|proxy-.*|range|referer|sec-.*|te|traceparent|tracestate|trailer|transfer-encoding|upgrade|user-agent|via|x-forwarded-.*|x-real-ip|x-request-id)$/i;

function tokenPlaces() {
  const place = z
    .strictObject({
      header: headerName()
        .refine((name) => !NO_PLACE.test(name), "must be a header that can carry a token")
        .exactOptional()
        .describe("Header; Authorization requires the prefix Bearer, in others it is optional"),
      cookie: optional(
        "Cookie; WebSockets and requests that change something must come from the same origin",
        z.string().regex(TOKEN, "must be the name of a cookie"),
      ),
      query: text()
        .refine((name) => !/[&=#+%\s]/.test(name), "must be a name without & = # + % and blanks")
        .exactOptional()
        .describe("Query parameter"),
      apiKey: headerName()
        .refine((name) => !NO_PLACE.test(name), "must be a header that can carry a key")
        .exactOptional()
        .describe("Header with an API key; Authorization takes Bearer sp_… beside tokens"),
      websocketProtocol: optional(
        "Subprotocol of a WebSocket: `base64url.bearer.authorization.k8s.io.<token>`, or `bearer, <token>`",
        z.boolean().refine((looks) => looks, "must be true, or left out"),
      ),
      others: optional(
        "ignore: a token that no issuer here accepts counts as none, and reaches the backend",
        z.literal("ignore"),
      ),
    })
    .transform(({ others, ...place }, context): TokenPlace => {
      if (others !== undefined && place.apiKey !== undefined) {
        return refuse(context, "has others with apiKey: only tokens have issuers");
      }
      if (isPlace(place)) return others === undefined ? place : { ...place, others };
      return refuse(context, "needs one of header, cookie, query, apiKey and websocketProtocol");
    });
  return z
    .array(place)
    .min(1)
    .refine(areDifferent, "must not name a place twice")
    .describe(
      "Where the token may be; the backend does not get it. Default: the Authorization header",
    );
}

/** Whether one place is named, and only one. */
function isPlace(written: object): written is TokenPlace {
  return Object.keys(written).length === 1;
}

/** Where tokens and keys may both be: they begin differently. */
function isAuthorization(header: string): boolean {
  return header.toLowerCase() === "authorization";
}

/** A header with keys has no tokens. */
function areDifferent(places: readonly TokenPlace[]): boolean {
  const names = places.map(({ others: _ignored, ...place }) =>
    JSON.stringify(
      "header" in place
        ? { header: foldedName(place.header) }
        : "apiKey" in place
          ? { [isAuthorization(place.apiKey) ? "apiKey" : "header"]: foldedName(place.apiKey) }
          : place,
    ),
  );
  return new Set(names).size === names.length;
}

/** RFC 6749 §3.3. */
const SCOPE = /^[!#-[\]-~]+$/;

/** A value with which a claim is compared, by value and type. */
const scalar = () =>
  z.union([text(), z.number(), z.boolean()], {
    error: "must be a text, a number, true or false",
  });

function requirements() {
  return requiring({
    groups: optional("Groups of the caller", names("group", text)),
    scopes: optional("Scopes of the token, in scope or scp", names("scope", scope)),
    claims: optional("Claims of the token; every entry must hold", z.array(claim()).min(1)),
    issuers: optional("Issuers, of which the token needs one", z.array(text()).min(1)),
    proof: optional(
      "The token must be bound to a client, else 401",
      z.boolean().refine((needs) => needs, "must be true, or left out"),
    ),
    spiffe: optional(
      "SPIFFE IDs, of which the certificate needs one; /* at the end: one or more segments",
      z
        .array(
          text().refine(
            (id) => isSpiffeId(id.replace(/\/\*$/, "/any")),
            "must be a SPIFFE ID such as spiffe://example.org/ns/shop/web, or end with /* for all below",
          ),
        )
        .min(1),
    ),
  });
}

/** What a person must have to sign in at a provider. */
export function personRequirements() {
  return requiring({
    groups: optional("Groups of the person", names("group", text)),
    claims: optional("Claims of the person; every entry must hold", z.array(claim()).min(1)),
  });
}

function requiring<Keys extends z.ZodRawShape>(keys: Keys) {
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
        any: optional("One of these is needed", z.array(name()).min(1)),
        all: optional("All of these are needed", z.array(name()).min(1)),
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
      claim: claimName().describe("Name; a.b is b in the object a"),
      any: optional("The value must be one of these", z.array(scalar()).min(1)),
      all: optional("The value must be a list with all of these", z.array(scalar()).min(1)),
      equals: optional("The value must be this", scalar()),
    })
    .refine(
      ({ any, all, equals }) => any !== undefined || all !== undefined || equals !== undefined,
      "needs any, all or equals",
    );
}

/** Reports keys that need an authenticated caller, on routes where the caller may be anonymous. */
export function accessProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  const { auth } = route;
  if (auth === "certificate") return certificateProblems(route, at, whole);
  const spiffe = mappingAt(route, "require")["spiffe"];
  if (spiffe !== undefined && auth !== "none" && auth !== "optional") {
    const message = "needs auth: certificate: no token has a SPIFFE ID of the connection";
    return [{ path: [...at, "require", "spiffe"], of: "key", message }];
  }
  if (auth !== "none" && auth !== "optional") return [];
  const useless = (key: string, message: string): PathProblem[] =>
    route[key] === undefined ? [] : [{ path: [...at, key], of: "key", message }];
  if (auth === "optional") {
    return useless(
      "require",
      "does not protect with auth: optional: a request without a token passes",
    );
  }
  const message = "must not be subject with auth: none, where callers are unknown";
  const bySubject = ["rateLimit", "concurrency"]
    .filter((key) => textAt(route, key, "by") === "subject")
    .map((key) => ({ path: [...at, key, "by"], message }));
  return [
    ...useless("require", "has no effect with auth: none, where the caller is unknown"),
    ...useless("tokenFrom", "has no effect with auth: none, which ignores tokens"),
    ...(route["mode"] === "monitor"
      ? useless("mode", "has no effect with auth: none, which refuses nobody")
      : []),
    ...bySubject,
  ];
}

/** Reports what a route with `auth: certificate` lacks, and keys about tokens, which it does not look at. */
function certificateProblems(route: Mapping, at: YamlPath, whole: Mapping): PathProblem[] {
  const asked = mappingAt(whole, "server", "tls")["clientCertificates"] !== undefined;
  const useless = (key: string, path: YamlPath, message: string): PathProblem[] =>
    mappingAt(route, ...path.slice(0, -1))[key] === undefined
      ? []
      : [{ path: [...at, ...path], of: "key", message }];
  const ofTokens = "has no effect with auth: certificate, which looks at no token";
  const unheld = "never holds with auth: certificate: a certificate has none";
  return [
    ...(asked ? [] : [{ path: [...at, "auth"], message: "needs server.tls.clientCertificates" }]),
    ...useless("tokenFrom", ["tokenFrom"], ofTokens),
    ...(route["forwardAuthorization"] === "strip"
      ? useless("forwardAuthorization", ["forwardAuthorization"], ofTokens)
      : []),
    ...["groups", "scopes", "issuers", "proof"].flatMap((key) =>
      useless(key, ["require", key], unheld),
    ),
  ];
}

/** Checks that a route names an existing entry of `authorization`, and has callers to authorize. */
export function authorizeProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  const name = textAt(route, "authorize");
  const names = Object.keys(mappingAt(whole, "authorization"));
  const path = [...at, "authorize"];
  if (name === undefined) return [];
  if (!names.includes(name)) {
    return unknownName(name, names, path, "names an entry of authorization that does not exist");
  }
  const { auth = "required" } = route;
  if (auth === "required" || auth === "certificate") return [];
  return [
    { path, message: "needs auth: required: without a token, there is no caller to authorize" },
  ];
}

/** Checks that assertions for a route can be made. */
export function assertionProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  if (route["assertion"] !== true) return [];
  const path = [...at, "assertion"];
  if (mappingAt(whole, "tokens")["assertion"] === undefined) {
    return [{ path, message: "needs tokens.assertion" }];
  }
  if (route["auth"] !== "none") return [];
  return [{ path, message: "needs a caller, and a route with auth: none has no caller" }];
}

/** Reports a route that requires bound tokens although none are accepted. */
export function requiredProofProblems(route: Mapping, at: YamlPath, { whole }: Written) {
  if (mappingAt(route, "require")["proof"] !== true) return [];
  const rules = [mappingAt(whole, "tokens"), ...listAt(whole, "tokens", "trusted")];
  if (rules.some((each) => (textAt(each, "proof") ?? "refuse") !== "refuse")) return [];
  const message = "needs tokens.proof: accept or require, or that of an entry of tokens.trusted";
  return [{ path: [...at, "require", "proof"], message }];
}

/** Reports issuers that a route requires although their tokens are not accepted. */
export function requiredIssuerProblems(route: Mapping, at: YamlPath, written: Written) {
  const { issuers } = mappingAt(route, "require");
  const keys = listAt(written.whole, "apiKeys").length === 0 ? [] : [API_KEY_ISSUER];
  const known = { issuers: [...written.issuers, ...keys] };
  return unknownIssuers(issuers, [...at, "require", "issuers"], known);
}
