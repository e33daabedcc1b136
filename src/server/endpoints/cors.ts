import type { Configuration } from "../../config/configuration.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { CorsFields } from "../../core/request/transfer.ts";
import type { Endpoint } from "../request/gate.ts";
import { GateError } from "../../core/request/errors.ts";
import { successAnswer } from "../request/write-answer.ts";
import { headerValues } from "../../lib/http/header-values.ts";

/**
 * Returns the value of a header that occurs exactly once, else undefined: of two fields, another reader could use the
 * other one.
 */
function onlyValue(rawHeaders: readonly string[], name: string): string | undefined {
  const [only, another] = headerValues(rawHeaders, name);
  return another === undefined ? only : undefined;
}

interface CorsOptions extends NonNullable<Configuration["cors"]> {
  readonly methods: readonly string[];
  /** Whether a refusal may have a nonce for a proof. */
  readonly givesNonces: boolean;
}

const NONE: CorsFields = { backend: [], own: [] };
const VARIES: CorsFields = { backend: ["Vary", "Origin"], own: ["Vary", "Origin"] };
/** The fields of Sallyport's own responses that scripts may not read unless they are named (Fetch Standard, §2.2.2). */
const OWN_FIELDS: readonly string[] = [
  "X-Request-Id",
  "Retry-After",
  "RateLimit",
  "RateLimit-Policy",
  "WWW-Authenticate",
  "Allow",
  "Proxy-Status",
];

/** Decides which responses scripts of other origins may read (Fetch Standard, §3.2). */
export type Cors = ReturnType<typeof createCors>;

export function createCors(options: CorsOptions) {
  const { credentials, origins, exposeHeaders, givesNonces } = options;
  const isForAnyone = origins.includes("*");
  const allows = originMatcher(origins);
  const endpoint = preflightEndpoint(options);
  const common = (exposed: readonly string[]): readonly string[] => [
    ...(credentials ? ["Access-Control-Allow-Credentials", "true"] : []),
    ...(exposed.length > 0 ? ["Access-Control-Expose-Headers", exposed.join(", ")] : []),
  ];
  const named = new Set(exposeHeaders.map((name) => name.toLowerCase()));
  const sent = givesNonces ? [...OWN_FIELDS, "DPoP-Nonce"] : OWN_FIELDS;
  const unnamed = sent.filter((name) => !named.has(name.toLowerCase()));
  const backend = common(exposeHeaders);
  const own = common([...exposeHeaders, ...unnamed]);
  const forOrigin = (origin: string, ...more: readonly string[]): CorsFields => ({
    backend: ["Access-Control-Allow-Origin", origin, ...backend, ...more],
    own: ["Access-Control-Allow-Origin", origin, ...own, ...more],
  });
  const forAnyone = forOrigin("*");

  return {
    /** @param origin the `Origin` of a request; undefined if it has none. */
    fields(origin: string | undefined): CorsFields {
      if (isForAnyone) return origin === undefined ? NONE : forAnyone;
      if (origin === undefined || !allows(origin)) return VARIES;
      return forOrigin(origin, "Vary", "Origin");
    },

    /** Whether a script of this origin may send cookies. */
    trusts: (origin: string): boolean => credentials && allows(origin),

    /**
     * @returns the endpoint for a preflight; undefined for any other request.
     * @throws GateError `origin_not_allowed`.
     */
    preflight({ method, rawHeaders }: GateRequest): Endpoint | undefined {
      if (method !== "OPTIONS") return undefined;
      const origin = onlyValue(rawHeaders, "origin");
      const asked = onlyValue(rawHeaders, "access-control-request-method");
      if (origin === undefined || asked === undefined) return undefined;
      if (!isForAnyone && !allows(origin)) throw new GateError("origin_not_allowed");
      return endpoint;
    },
  };
}

/** Creates a function that checks a complete origin. `*` stands for one label, without a dot. */
function originMatcher(origins: readonly string[]): (origin: string) => boolean {
  const exact = new Set(origins.filter((origin) => !origin.includes("*")));
  const patterns = origins
    .filter((origin) => origin.includes("://*."))
    .map((origin) => {
      const [scheme = "", rest = ""] = origin.split("://*");
      return { start: `${scheme}://`, rest };
    });
  return (origin) =>
    exact.has(origin) ||
    patterns.some(({ start, rest }) => {
      if (!origin.startsWith(start) || !origin.endsWith(rest)) return false;
      const label = origin.slice(start.length, origin.length - rest.length);
      return /^[a-z0-9_-]+$/.test(label);
    });
}

/** Creates the endpoint for preflights. All get the same response: the browser compares its request with it. */
function preflightEndpoint({ methods, headers, maxAge }: CorsOptions): Endpoint {
  const fields = [
    ...["Access-Control-Allow-Methods", methods.join(", ")],
    ...["Access-Control-Allow-Headers", headers.join(", ")],
    ...["Access-Control-Max-Age", String(Math.floor(maxAge / 1000))],
  ];
  return {
    name: "preflight",
    methods: ["OPTIONS"],
    auth: "none",
    async answer({ request }) {
      return successAnswer(request, "Other origins may ask", {}, fields);
    },
  };
}
