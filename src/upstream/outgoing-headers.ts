import type { Permit } from "../core/permit.ts";
import { FORWARDED_NAMES, ForwardedHeaders } from "./forwarded-headers.ts";
import {
  CLIENT_SUBJECT_HEADER,
  fieldValue,
  IDENTITY_PRESETS,
  type IdentityHeaderNames,
  IdentityHeaders,
} from "./identity-headers.ts";
import { mayTrail } from "./trailer-fields.ts";

/** Makes what the backend gets around the body. Pure. */
export interface OutgoingHeaders {
  /** The header section: name and value alternating, without framing. */
  headers(permit: Permit): string[];
  /** Of the client's trailers those that may go on: name and value alternating. */
  trailers(rawTrailers: readonly string[]): string[];
}

/** What happens to a header that the client sent. */
type Disposition = "pass" | "drop" | "authorization" | "forwarded" | "from-proxy" | "connection";

/** Meant for the next hop alone (RFC 9110 §7.6.1), or written anew by us. */
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
  // CGI makes it HTTP_PROXY, the variable that names a proxy for what the backend itself asks for (CVE-2016-5385).
  "proxy",
];

/** Names seen so far and what happens to them; bounded, since a client chooses the names. */
const REMEMBERED_NAMES = 1024;

/** One spelling for all aliases: CGI and what follows it fold every character that is no letter or digit into one. */
function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");
}

/** In which proxies tell backends who is asking: their whole families, since backends know more names than any preset. */
const IDENTITY_FAMILIES =
  /^x-(?:auth-request|remote|forwarded-(?:user|groups?|email|preferred-username|(?:access|id)-token))(?:-|$)/;

/** In which proxies tell backends what was asked for before they changed it, and by whom: believed from a trusted proxy alone. */
const PROXY_FAMILIES =
  /^(?:x-(?:forwarded|original|envoy-original|rewrite)(?:-|$)|forwarded-for$|(?:x-)?(?:true-client|cluster-client|client|remote|originating)-ip$|(?:cf-connecting|fastly-client)-ip$)/;

/** @param names the identity headers of this gate. Those of every preset are removed from what a client sends, too. */
export function createOutgoingHeaders(names: IdentityHeaderNames): OutgoingHeaders {
  const presets: IdentityHeaderNames[] = Object.values(IDENTITY_PRESETS);
  const identityNames = new Set(
    [names, ...presets]
      .flatMap((row) => [row.subject, row.groups, row.issuer])
      .concat(CLIENT_SUBJECT_HEADER)
      .filter((name) => name !== undefined)
      .map(folded),
  );
  const ours = new Set([...DROPPED, ...FORWARDED_NAMES, ...identityNames, "authorization"]);
  const remembered = new Map<string, Disposition>();
  const identities = new IdentityHeaders(names);
  const forwarded = new ForwardedHeaders();

  function dispositionOf(name: string): Disposition {
    const known = remembered.get(name);
    if (known !== undefined) return known;
    const disposition = decide(name.toLowerCase());
    if (remembered.size < REMEMBERED_NAMES) remembered.set(name, disposition);
    return disposition;
  }

  function decide(name: string): Disposition {
    if (name === "connection") return "connection";
    if (name === "authorization") return "authorization";
    if (FORWARDED_NAMES.has(name)) return "forwarded";
    const alias = folded(name);
    if (ours.has(alias) || IDENTITY_FAMILIES.test(alias)) return "drop";
    return PROXY_FAMILIES.test(alias) ? "from-proxy" : "pass";
  }

  function headers(permit: Permit): string[] {
    const { request, route, identity } = permit;
    const { rawHeaders } = request;
    const fields: string[] = [];
    let named: ReadonlySet<string> | undefined;
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] ?? "";
      const value = rawHeaders[i + 1] ?? "";
      switch (dispositionOf(name)) {
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
          named = namedIn(value, named);
          break;
        default:
      }
    }
    const passed = named === undefined ? fields : without(fields, named);
    passed.push("X-Request-Id", request.requestId);
    append(passed, forwarded.for(request));
    append(passed, identities.for(identity));
    const { clientSubject } = request;
    if (clientSubject !== undefined) passed.push(CLIENT_SUBJECT_HEADER, fieldValue(clientSubject));
    return passed;
  }

  function trailers(rawTrailers: readonly string[]): string[] {
    const fields: string[] = [];
    for (let i = 0; i + 1 < rawTrailers.length; i += 2) {
      const name = rawTrailers[i] ?? "";
      if (dispositionOf(name) === "pass" && mayTrail(name)) {
        fields.push(name, rawTrailers[i + 1] ?? "");
      }
    }
    return fields;
  }

  return { headers, trailers };
}

function append(headers: string[], more: readonly string[]): void {
  for (const each of more) headers.push(each);
}

/** The header names in a `Connection` field besides the two options that every connection has. */
function namedIn(
  value: string,
  before: ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  const lower = value.toLowerCase();
  if (lower === "keep-alive" || lower === "close") return before;
  return new Set([...(before ?? []), ...lower.split(",").map((option) => option.trim())]);
}

function without(headers: readonly string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    if (!names.has(name.toLowerCase())) kept.push(name, headers[i + 1] ?? "");
  }
  return kept;
}
