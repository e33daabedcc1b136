import type { Assertions } from "../../tokens/assertion/assertions.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import type { Permit } from "../../core/request/permit.ts";
import {
  applyUnderscorePolicy,
  type UnderscoreHeaders,
} from "../../core/request/underscore-headers.ts";
import {
  foldedName,
  headerValues,
  keptFields,
  TRACE_HEADERS,
  withoutFields,
} from "../../lib/http/header-values.ts";
import { instanceName } from "../../lib/instance-name.ts";
import { rememberedByName } from "../../lib/text/by-name.ts";
import {
  comesFromProxies,
  DROPPED,
  METHOD_OVERRIDES,
  FORWARDED_NAMES,
  identifiesCaller,
} from "./header-names.ts";
import {
  headersOfCertificate,
  type IdentityHeaderNames,
  identityHeaders,
} from "./identity-headers.ts";
import { addPrefixHeader, repeatsUrl, withoutTokens, withoutTokensInUrl } from "./rewrite.ts";
import { FORBIDDEN_TRAILERS } from "./incoming-headers.ts";
import { isSendableValue } from "../http1/response-parser.ts";
import type { Tracing } from "../../observe/tracing/opentelemetry.ts";

const TRAILERS = /(?:^|,)[ \t]*trailers[ \t]*(?:$|,)/i;

/** Whether a client can read trailers, according to its `TE`. @param rawHeaders names and values, alternating. */
export function takesTrailers(rawHeaders: readonly string[]): boolean {
  return headerValues(rawHeaders, "te").some((value) => TRAILERS.test(value));
}

export type OutgoingHeaders = ReturnType<typeof createOutgoingHeaders>;

/** What to do with a header from the client. */
type Disposition = "pass" | "drop" | "authorization" | "from-proxy" | "connection";

/** This instance in `CDN-Loop`, sent as one more field: a list may span several fields (RFC 9110 §5.3). */
const INSTANCE = instanceName();

const REPLACED = new Set(TRACE_HEADERS);

/** The settings that hold for all header sections. */
export interface HeaderSettings {
  /** A client's headers with the names of any preset are removed, too. */
  readonly identityHeaders: IdentityHeaderNames;
  /** What happens to trailers with an underscore in their names; by default, they pass. The intake does it to headers. */
  readonly underscoreHeaders?: UnderscoreHeaders | undefined;
  /** The headers that pass from trusted proxies, in addition to those that Sallyport extends. */
  readonly trustedHeaders?: readonly string[] | undefined;
  /** The headers that some route compares. As trailers, which a backend may merge into the head, they would evade that. */
  readonly comparedHeaders?: readonly string[] | undefined;
  /** The query parameters from which some route takes tokens. A page on one route sends its URL to all others (`Referer`). */
  readonly tokenQueries?: readonly string[] | undefined;
  /** The headers in which some route takes API keys, which clients may send to every route. */
  readonly keyHeaders?: readonly string[] | undefined;
  /** Whether `DPoP` is for us, and reaches no backend. */
  readonly dropsProofs?: boolean | undefined;
}

/**
 * Returns what creates the header and trailer sections for backends.
 *
 * @param assertions what signs assertions, if they are configured.
 * @param tracing replaces the trace headers, if it is on: each header section begins a span of its own.
 */
export function createOutgoingHeaders(
  settings: HeaderSettings,
  assertions?: Pick<Assertions, "header" | "for">,
  tracing?: Pick<Tracing, "dispatched">,
) {
  const { identityHeaders: names, underscoreHeaders = "allow" } = settings;
  const dispositions = new Dispositions(settings, assertions?.header);
  /** All requests with a cached token share one identity. */
  const identities = new WeakMap<Identity, readonly string[]>();
  return {
    /** Returns the client's trailers that the backend gets. @throws GateError `underscore_header`. */
    trailers({ route }: Permit, sent: readonly string[]): readonly string[] {
      if (sent.length === 0) return sent;
      const kept = dispositions.trailers(applyUnderscorePolicy(sent, underscoreHeaders));
      const others = route.requestHeaders?.untouched(kept) ?? kept;
      return route.tokenFrom === undefined ? others : withoutTokens(others, route.tokenFrom);
    },
    /** Returns names and values, alternating, without framing. @param retries the number of earlier attempts. */
    headers(permit: Permit, retries = 0): string[] {
      const { request, route, identity } = permit;
      const passed = dispositions.passed(permit);
      passed.push("X-Request-Id", request.requestId, "CDN-Loop", INSTANCE);
      if (retries > 0) passed.push("X-Retry-Attempt", String(retries));
      append(passed, forwardedHeaders(request));
      if (identity !== undefined) {
        let known = identities.get(identity);
        if (known === undefined) {
          identities.set(identity, (known = identityHeaders(names, identity)));
        }
        append(passed, known);
        if (route.assertion === true && assertions !== undefined) {
          passed.push(assertions.header, assertions.for(identity));
        }
      }
      const { clientCertificate } = request.connection;
      if (clientCertificate !== undefined) append(passed, headersOfCertificate(clientCertificate));
      if (route.rewrite?.stripPrefix !== undefined) addPrefixHeader(passed, permit);
      const fields = route.requestHeaders?.modify(passed, permit) ?? passed;
      return tracing === undefined
        ? fields
        : [...withoutFields(fields, REPLACED), ...tracing.dispatched(permit)];
    },
  };
}

/** Decides which of the client's headers the backend gets. */
class Dispositions {
  readonly #of = rememberedByName((name) => this.#decide(name.toLowerCase()));
  readonly #ours: ReadonlySet<string>;
  /** In lower case. Not folded: the proxy that sets `X-Original-URL` passes on a client's `x_original_url`. */
  readonly #trusted: ReadonlySet<string>;
  readonly #compared: ReadonlySet<string>;
  readonly #tokenQueries: readonly string[];
  readonly #assertion: string | undefined;
  readonly #repeatsUrl = rememberedByName((name) => repeatsUrl(foldedName(name)));

  constructor(settings: HeaderSettings, assertion: string | undefined) {
    const { identityHeaders: names, trustedHeaders = [], comparedHeaders = [] } = settings;
    const { keyHeaders = [], dropsProofs = false } = settings;
    this.#tokenQueries = settings.tokenQueries ?? [];
    this.#assertion = assertion?.toLowerCase();
    this.#compared = new Set(comparedHeaders.map(foldedName));
    this.#trusted = new Set(trustedHeaders.map((name) => name.toLowerCase()));
    const claimNames = Object.keys(names.claims ?? {});
    const identityNames = [names.subject, names.groups, names.issuer, assertion, ...claimNames]
      .filter((name) => name !== undefined)
      .map(foldedName);
    const own = [...identityNames, ...keyHeaders.map(foldedName), "authorization"];
    if (dropsProofs) own.push("dpop");
    this.#ours = new Set([...DROPPED, ...FORWARDED_NAMES, ...own]);
  }

  /** @returns the client's headers for the backend, name and value alternating. */
  passed(permit: Permit): string[] {
    const { request, route } = permit;
    const { rawHeaders } = request;
    const fields: string[] = [];
    let named: Set<string> | undefined;
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] ?? "";
      const value = rawHeaders[i + 1] ?? "";
      const disposition = this.#of(name);
      if (disposition === "connection") named = withOptions(named, value);
      else if (
        disposition === "pass" ||
        (disposition === "from-proxy" && request.connection.peerTrusted) ||
        (disposition === "authorization" && passesAuthorization(permit, value))
      ) {
        fields.push(name, value);
      }
    }
    const passed = named === undefined ? fields : withoutFields(fields, named);
    if (this.#tokenQueries.length > 0) this.#cleanUrls(passed);
    return route.tokenFrom === undefined
      ? passed
      : withoutTokens(passed, route.tokenFrom.for(request));
  }

  /** Removes tokens from the URLs in fields, in place. */
  #cleanUrls(fields: string[]): void {
    for (let i = 0; i + 1 < fields.length; i += 2) {
      if (!this.#repeatsUrl(fields[i] ?? "")) continue;
      fields[i + 1] = withoutTokensInUrl(fields[i + 1] ?? "", this.#tokenQueries);
    }
  }

  /**
   * @returns the trailers that every client may send: none that would change how its request is interpreted, since a backend
   * may merge them into the header section (RFC 9110 §6.5.1).
   */
  trailers(fields: readonly string[]): string[] {
    return keptFields(
      fields,
      (name, value) =>
        this.#of(name) === "pass" &&
        !this.#compared.has(foldedName(name)) &&
        !FORBIDDEN_TRAILERS.test(name) &&
        isSendableValue(value),
    );
  }

  #decide(name: string): Disposition {
    if (name === "connection") return "connection";
    if (name === "authorization" && name !== this.#assertion) return "authorization";
    const alias = foldedName(name);
    if (this.#ours.has(alias) || identifiesCaller(alias)) return "drop";
    if (METHOD_OVERRIDES.has(alias)) return "drop";
    if (!comesFromProxies(alias)) return "pass";
    return this.#trusted.has(name) ? "from-proxy" : "drop";
  }
}

/** Schemes of ours, also behind another in a list: what they carry is a token, even one that nobody has verified. And API keys. */
const OURS = /(?:^|[\s,])(?:bearer|dpop)(?![\w-])|sp_[0-9a-f]{12}_/i;

/** A caller who is known by the session cookie may have another scheme for the application. */
function passesAuthorization({ request, route, identity }: Permit, value: string): boolean {
  if (route.forwardAuthorization === "keep") return true;
  if (route.tokenFrom?.for(request).authorizationIsOthers === true) return true;
  return route.tokenFrom?.session === true && identity !== undefined && !OURS.test(value);
}

interface CachedHeaders {
  readonly authority: string;
  readonly headers: readonly string[];
}

/** By connection, on which nearly all requests have the same host. */
const cached = new WeakMap<object, CachedHeaders>();

/**
 * Returns `X-Forwarded-*`, `X-Real-IP` and `Forwarded` (RFC 7239) from the connection, appended to what a trusted proxy
 * sent: names and values, alternating.
 */
export function forwardedHeaders(request: GateRequest): readonly string[] {
  const { connection, authority } = request;
  const before = connection.peerTrusted ? undefined : cached.get(connection);
  if (before?.authority === authority) return before.headers;
  const headers = createForwardedHeaders(request);
  if (!connection.peerTrusted) cached.set(connection, { authority, headers });
  return headers;
}

function createForwardedHeaders(request: GateRequest): readonly string[] {
  const { authority } = request;
  const { peer, peerTrusted, secure } = request.connection;
  const scheme = secure ? "https" : "http";
  const port = /:(\d+)$/.exec(authority)?.[1] ?? (secure ? "443" : "80");
  const node = peer.includes(":") ? `"[${peer}]"` : peer;
  // An HTTP/1.0 client may send no host.
  const host = authority === "" ? "" : `host="${authority}";`;
  const element = `for=${node};${host}proto=${scheme}`;
  const own = [
    ...["X-Forwarded-For", peer, "X-Forwarded-Proto", scheme, "X-Forwarded-Host", authority],
    ...["X-Forwarded-Port", port, "X-Real-IP", peer, "Forwarded", element],
  ];
  const fields = peerTrusted ? fromProxy(own, request) : own;
  if (authority !== "") return fields;
  return fields.filter((_text, at) => fields[at - (at % 2) + 1] !== "");
}

/** Takes over what a trusted proxy sent, and appends our own values to its lists. */
function fromProxy(own: readonly string[], { rawHeaders, client }: GateRequest): readonly string[] {
  const fields: string[] = [];
  for (let i = 0; i + 1 < own.length; i += 2) {
    const [name = "", value = ""] = [own[i], own[i + 1]];
    const received = valueOf(rawHeaders, name.toLowerCase());
    if (name === "X-Real-IP") fields.push(name, client);
    else if (FORWARDED_LISTS.has(name)) {
      fields.push(name, received ? `${received}, ${value}` : value);
    } else fields.push(name, received ?? value);
  }
  return fields;
}

const FORWARDED_LISTS = new Set(["X-Forwarded-For", "Forwarded"]);

/** Joins all fields of a name into one list (RFC 9110 §5.3). An empty field adds no element (§5.6.1.1). */
function valueOf(rawHeaders: readonly string[], wanted: string): string | undefined {
  const values = headerValues(rawHeaders, wanted);
  return values.length === 0 ? undefined : values.filter((value) => value !== "").join(", ");
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
