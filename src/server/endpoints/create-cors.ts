import type { Cors, CorsFields } from "../../core/route/route.ts";
import type { Endpoint } from "../../core/request/gate.ts";
import { GateError } from "../../core/request/errors.ts";
import { onlyValue } from "../../lib/http/header-values.ts";
import { envelopeAnswer } from "../request/write-answer.ts";

export interface CorsOptions {
  /** Exact origins, `https://*.example.com` for one label, or `*`. */
  readonly origins: readonly string[];
  readonly methods: readonly string[];
  /** Request headers that scripts may send, and headers of answers that they may read. */
  readonly headers: readonly string[];
  readonly exposeHeaders: readonly string[];
  readonly credentials: boolean;
  readonly maxAgeMs: number;
}

const NONE: CorsFields = { backend: [], own: [] };
const VARIES: CorsFields = { backend: ["Vary", "Origin"], own: ["Vary", "Origin"] };
/** The fields of Sallyport's own responses that scripts may not read unless they are named (Fetch Standard, §2.2.2). */
const OWN_FIELDS: readonly string[] = [
  ...["X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy", "WWW-Authenticate"],
  ...["Allow", "Proxy-Status"],
];

/** Creates the handling of requests from scripts of other origins. */
export function createCors(options: CorsOptions): Cors {
  const { credentials, exposeHeaders } = options;
  const allows = originMatcher(options.origins);
  const anyone = options.origins.includes("*");
  const common = (exposed: readonly string[]): readonly string[] => [
    ...(credentials ? ["Access-Control-Allow-Credentials", "true"] : []),
    ...(exposed.length > 0 ? ["Access-Control-Expose-Headers", exposed.join(", ")] : []),
  ];
  const named = new Set(exposeHeaders.map((name) => name.toLowerCase()));
  const unnamed = OWN_FIELDS.filter((name) => !named.has(name.toLowerCase()));
  const [ofBackend, ofOwn] = [common(exposeHeaders), common([...exposeHeaders, ...unnamed])];
  const forOrigin = (origin: string, ...more: readonly string[]): CorsFields => ({
    backend: ["Access-Control-Allow-Origin", origin, ...ofBackend, ...more],
    own: ["Access-Control-Allow-Origin", origin, ...ofOwn, ...more],
  });
  const forAnyone = forOrigin("*");
  const endpoint = preflightEndpoint(options);
  return {
    fields(origin) {
      if (anyone) return origin === undefined ? NONE : forAnyone;
      if (origin === undefined || !allows(origin)) return VARIES;
      return forOrigin(origin, "Vary", "Origin");
    },
    trusts: (origin) => credentials && allows(origin),
    preflight(request) {
      if (request.method !== "OPTIONS") return undefined;
      const { rawHeaders } = request;
      const origin = onlyValue(rawHeaders, "origin");
      const method = onlyValue(rawHeaders, "access-control-request-method");
      if (origin === undefined || method === undefined) return undefined;
      if (!anyone && !allows(origin)) throw new GateError("origin_not_allowed");
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
function preflightEndpoint({ methods, headers, maxAgeMs }: CorsOptions): Endpoint {
  const fields = [
    ...["Access-Control-Allow-Methods", methods.join(", ")],
    ...["Access-Control-Allow-Headers", headers.join(", ")],
    ...["Access-Control-Max-Age", String(Math.floor(maxAgeMs / 1000))],
  ];
  return {
    name: "preflight",
    methods: ["OPTIONS"],
    auth: "none",
    async answer({ request }) {
      const envelope = { id: request.id, message: "Other origins may ask", success: true };
      return envelopeAnswer(200, envelope, { requestId: request.requestId, extra: fields });
    },
  };
}
