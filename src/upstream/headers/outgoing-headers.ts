import type { Permit } from "../../core/request/permit.ts";
import { instanceName } from "../../lib/instance-name.ts";
import { FORWARDED_NAMES, ForwardedHeaders } from "./forwarded-headers.ts";
import {
  CLIENT_SUBJECT_HEADER,
  fieldValue,
  IDENTITY_PRESETS,
  type IdentityHeaderNames,
  IdentityHeaders,
} from "./identity-headers.ts";

/** Creates the header section for the backend. Pure. */
export interface OutgoingHeaders {
  /** Returns names and values, alternating, without framing. */
  headers(permit: Permit): string[];
}

/** What to do with a header from the client. */
type Disposition = "pass" | "drop" | "authorization" | "forwarded" | "from-proxy" | "connection";

/** Hop-by-hop headers (RFC 9110 §7.6.1), and headers that the proxy writes itself. */
const DROPPED = [
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"],
  ...[
    "proxy-authentication-info",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
  ],
  ...["host", "content-length", "expect", "x-request-id"],
  // CGI turns it into HTTP_PROXY, the variable for the proxy of the backend's own requests (CVE-2016-5385).
  "proxy",
];

/** Appended to the instances that the request has passed: a list may span several fields (RFC 9110 §5.3). */
const INSTANCE = instanceName();

/** Bounds on the cache of names, which clients choose. */
const MAX_CACHED_NAMES = 1024;
const MAX_CACHED_LENGTH = 64;

/** Maps aliases to one spelling: CGI and its descendants treat all characters except letters and digits alike. */
function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");
}

/**
 * Headers in which proxies identify the caller, as whole families, since backends know more names than any preset.
 * `Remote-User` and similar are those of Authelia and CGI.
 */
const IDENTITY_FAMILIES =
  /^(?:x-(?:auth-request|remote|forwarded-(?:user|groups?|email|preferred-username|(?:access|id)-token))|remote-(?:user|groups?|email|name))(?:-|$)/;

/** Headers in which proxies report the original request and its client: kept only from a trusted proxy. */
const PROXY_FAMILIES =
  /^(?:x-(?:forwarded|original|envoy-original|rewrite)(?:-|$)|forwarded-for$|(?:x-)?(?:true-client|cluster-client|client|remote|originating)-ip$|(?:cf-connecting|fastly-client)-ip$)/;

/** @param names the identity headers of this gate. A client's headers with the names of any preset are removed, too. */
export function createOutgoingHeaders(names: IdentityHeaderNames): OutgoingHeaders {
  const dispositions = new Dispositions(names);
  const identities = new IdentityHeaders(names);
  const forwarded = new ForwardedHeaders();
  return {
    headers(permit) {
      const { request, identity } = permit;
      const passed = dispositions.passed(permit);
      passed.push("X-Request-Id", request.requestId, "CDN-Loop", INSTANCE);
      append(passed, forwarded.for(request));
      append(passed, identities.for(identity));
      const { clientSubject } = request;
      if (clientSubject !== undefined) {
        passed.push(CLIENT_SUBJECT_HEADER, fieldValue(clientSubject));
      }
      return passed;
    },
  };
}

/** Which of the client's headers the backend gets. */
class Dispositions {
  readonly #known = new Map<string, Disposition>();
  readonly #ours: ReadonlySet<string>;

  constructor(names: IdentityHeaderNames) {
    const presets: IdentityHeaderNames[] = Object.values(IDENTITY_PRESETS);
    const identityNames = [names, ...presets]
      .flatMap((row) => [row.subject, row.groups, row.issuer])
      .concat(CLIENT_SUBJECT_HEADER)
      .filter((name) => name !== undefined)
      .map(folded);
    this.#ours = new Set([...DROPPED, ...FORWARDED_NAMES, ...identityNames, "authorization"]);
  }

  /** @returns the client's headers that go on to the backend, name and value alternating. */
  passed({ request, route }: Permit): string[] {
    const { rawHeaders } = request;
    const fields: string[] = [];
    let named: Set<string> | undefined;
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] ?? "";
      const value = rawHeaders[i + 1] ?? "";
      switch (this.#of(name)) {
        case "pass":
          fields.push(name, value);
          break;
        case "from-proxy":
          if (request.peerTrusted) fields.push(name, value);
          break;
        case "authorization":
          if (route.forwardAuthorization === "keep") fields.push(name, value);
          break;
        case "connection":
          named = withOptions(named, value);
          break;
        default:
      }
    }
    return named === undefined ? fields : without(fields, named);
  }

  #of(name: string): Disposition {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const disposition = this.#decide(name.toLowerCase());
    if (this.#known.size < MAX_CACHED_NAMES && name.length <= MAX_CACHED_LENGTH) {
      this.#known.set(name, disposition);
    }
    return disposition;
  }

  #decide(name: string): Disposition {
    if (name === "connection") return "connection";
    if (name === "authorization") return "authorization";
    if (FORWARDED_NAMES.has(name)) return "forwarded";
    const alias = folded(name);
    if (this.#ours.has(alias) || IDENTITY_FAMILIES.test(alias)) return "drop";
    return PROXY_FAMILIES.test(alias) ? "from-proxy" : "pass";
  }
}

function append(headers: string[], more: readonly string[]): void {
  for (const each of more) headers.push(each);
}

/** Adds the header names that a `Connection` field lists; most fields list only the two standard options. */
function withOptions(named: Set<string> | undefined, value: string): Set<string> | undefined {
  const lower = value.toLowerCase();
  if (lower === "keep-alive" || lower === "close") return named;
  const all = named ?? new Set();
  for (const option of lower.split(",")) all.add(option.trim());
  return all;
}

function without(headers: readonly string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    if (!names.has(name.toLowerCase())) kept.push(name, headers[i + 1] ?? "");
  }
  return kept;
}
