import { z } from "zod";
import { isHost, METHOD, name, refuse, text } from "../fields.ts";
import { routeAssertion } from "../identity/assertion-section.ts";
import { pathRegex, urlPath } from "../url-path.ts";
import { routeAuthorize } from "./authorization-section.ts";
import { headerKeys } from "./header-fields.ts";
import { requirements } from "./requirement-keys.ts";
import {
  concurrency,
  matchedHeaders,
  mirror,
  networkKeys,
  paths,
  rateLimit,
  retry,
  routeLimits,
  routeTimeouts,
} from "./route-keys.ts";
import { tokenPlaces } from "./token-places.ts";

/** The section `routes`. */

const HOST_PATTERN = "must be a host name without a port, such as api.example.com or *.example.com";

/** The keys that determine which requests a route matches. */
function matching() {
  return {
    hosts: z
      .array(
        z
          .string()
          .refine((host) => isHost(host.replace(/^\*\./, "")), HOST_PATTERN)
          .transform((host) => host.toLowerCase()),
      )
      .min(1)
      .exactOptional()
      .describe("Host names; *.example.com matches one label. Default: every host"),
    path: urlPath("prefix")
      .exactOptional()
      .describe("Path prefix, on segment boundaries; default: /"),
    exact: urlPath("exact").exactOptional().describe("One exact path"),
    regex: pathRegex()
      .exactOptional()
      .describe("Regular expression for the whole path, matched in linear time"),
    methods: z
      .array(z.string().superRefine(checkMethod))
      .min(1)
      .exactOptional()
      .describe("Methods in upper case. Default: every method"),
    headers: matchedHeaders(),
  };
}

/** The keys that concern the callers. */
function accessKeys() {
  return {
    auth: z
      .enum(["required", "optional", "none"])
      .default("required")
      .describe(
        "Whether a token is required. optional lets requests without a token pass as anonymous, but refuses invalid tokens (401); none makes the route public",
      ),
    tokenFrom: tokenPlaces().exactOptional(),
    mode: z
      .enum(["enforce", "monitor"])
      .default("enforce")
      .describe(
        "monitor refuses nothing: requests that it would refuse are counted and forwarded without identity headers",
      ),
    require: requirements().exactOptional().describe("Further requirements on the caller (403)"),
  };
}

function route() {
  return z
    .strictObject({
      name: name().describe("Name of the route in metrics and logs: 1 to 64 of a-z, 0-9, _ and -"),
      ...matching(),
      ...networkKeys(),
      paths: paths(),
      ...accessKeys(),
      upstream: text().describe("Name of the upstream"),
      forwardAuthorization: z
        .enum(["strip", "keep"])
        .default("strip")
        .describe("Whether the backend gets the Authorization header: strip removes it"),
      limits: routeLimits().exactOptional().describe("Overrides server.limits for this route"),
      rateLimit: rateLimit().exactOptional().describe("Limits the requests of one caller (429)"),
      rewrite: rewrite().exactOptional().describe("Rewrites the path for the backend"),
      ...headerKeys(),
      timeouts: routeTimeouts(),
      concurrency: concurrency(),
      authorize: routeAuthorize(),
      retry: retry(),
      mirror: mirror(),
      assertion: routeAssertion(),
    })
    .transform(({ path, exact, regex, ...rest }) => {
      if (exact !== undefined) return { ...rest, exact };
      return regex === undefined ? { ...rest, path: path ?? "/" } : { ...rest, regex };
    });
}

function rewrite() {
  const prefix = () =>
    urlPath("plain")
      .refine((path) => !path.endsWith("/"), "must not end with a slash")
      .exactOptional();
  return z.strictObject({
    stripPrefix: prefix().describe("Prefix to remove from the path"),
    addPrefix: prefix().describe("Prefix to add to the path after that"),
    responses: z
      .boolean()
      .exactOptional()
      .describe(
        "Whether to map Location, Content-Location, Refresh and cookie paths back; default: if the path or the Host is changed",
      ),
  });
}

function checkMethod(method: string, context: z.RefinementCtx<string>): void {
  if (method === "CONNECT" || method === "TRACE") {
    refuse(context, "must not be CONNECT or TRACE");
  } else if (!METHOD.test(method)) {
    const upper = method.toUpperCase();
    const hint = /^[A-Z]+$/.test(upper) ? `did you mean ${upper}?` : undefined;
    refuse(context, "must be a method in upper case", { hint });
  }
}

export function routesSection() {
  return z
    .array(route())
    .min(1, "must not be empty: leave it out to send everything to the only upstream")
    .exactOptional()
    .describe("Which requests go to which upstream; default: everything goes to the only upstream");
}
