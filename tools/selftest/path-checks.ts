import { type Check, single } from "./check-result.ts";
import {
  arrives,
  describeArrival,
  fail,
  pass,
  refusedOrPublic,
  refusedOrUnauthorized,
} from "./expectations.ts";
import { authorization, protectedPath, type Target } from "./deployment.ts";
import { HTTP1, type RequestWriter } from "./raw-exchange.ts";

/** Spellings that some server may decode as one step up (`../`) or as the end of the path. */
const STEPS: readonly (readonly [name: string, step: string])[] = [
  ["dots", "../"],
  ["encoded-dots", "%2e%2e/"],
  ["encoded-dots-upper-case", "%2E%2E/"],
  ["one-encoded-dot", ".%2e/"],
  ["encoded-twice", "%252e%252e/"],
  ["back-slash", "..\\"],
  ["encoded-back-slash", "..%5c"],
  ["encoded-slash", "..%2f"],
  ["semicolon", "..;/"],
  ["parameter", ";a=b/../"],
  ["overlong-utf-8", "%c0%ae%c0%ae/"],
  ["nul", "..%00/"],
  ["encoded-tab", "..%09/"],
  ["encoded-line-end", "..%0d%0a/"],
  ["empty-segment", "/../"],
  ["broken-encoding", "..%/"],
  ["encoded-question-mark", "%3f/../"],
  ["encoded-fragment", "%23/../"],
  ["fragment", "#/../"],
];

/** Request targets that name another resource, or that cannot be parsed (RFC 9112 §3.2). */
const TARGETS: readonly (readonly [
  name: string,
  target: (path: string, host: string) => string,
])[] = [
  ["absolute-form-other-host", (path) => `http://other.example${path}`],
  ["absolute-form-user", (path, host) => `http://${host}@other.example${path}`],
  ["absolute-form-other-scheme", (path, host) => `ftp://${host}${path}`],
  ["no-leading-slash", (path) => path.slice(1)],
  ["two-leading-slashes", (path) => `/${path}`],
  ["fragment-behind-query", (path) => `${path}?a#b`],
  ["blank", (path) => `${path} b`],
  ["byte-over-ascii", (path) => `${path}\xe9`],
  ["delete-character", (path) => `${path}\x7f`],
];

/**
 * Returns checks with paths that two servers understand differently: the path that arrives must be the authorized one.
 */
export function pathChecks(target: Target, writer: RequestWriter = HTTP1): Check[] {
  const { get, refused } = writer;
  const { publicPath = "/", protectedPath: base } = target;
  const skip = target.publicPath === undefined ? "--public is not set" : undefined;
  const fromPublic = (name: string, path: (mark: string) => string): Check =>
    single(
      `path/public-${name}`,
      refusedOrPublic(publicPath),
      (mark) => get(target, path(mark), []),
      skip,
    );
  const withToken = (name: string, line: (mark: string) => string): Check =>
    single(`path/protected-${name}`, refused, (mark) =>
      get(target, line(mark), [authorization(target)]),
    );
  const depth = publicPath.split("/").length - 2;
  return [
    ...STEPS.map(([name, step]) =>
      fromPublic(name, (mark) => `${publicPath}${step.repeat(depth)}${base.slice(1)}${mark}`),
    ),
    askedAs(target, writer),
    fromPublic("neighbour", (mark) => `${publicPath.slice(0, -1)}x/${mark}`),
    ...STEPS.map(([name, step]) =>
      withToken(name, (mark) => `${protectedPath(target, mark, "a/")}${step}b`),
    ),
    ...TARGETS.map(([name, spell]) =>
      withToken(name, (mark) => spell(protectedPath(target, mark), target.host)),
    ),
    ...suffixChecks(target, writer),
    queryCheck(target, writer),
  ];
}

/** The fields by which proxies name the request when they ask another program whether it may pass, in each way. */
const QUESTIONS: readonly (readonly [
  name: string,
  fields: (path: string, host: string) => readonly string[],
])[] = [
  ["x-original-uri", (path) => ["X-Original-Method: GET", `X-Original-URI: ${path}`]],
  [
    "x-original-url",
    (path, host) => ["X-Original-Method: GET", `X-Original-URL: https://${host}${path}`],
  ],
  [
    "x-forwarded-uri",
    (path, host) => [
      "X-Forwarded-Method: GET",
      `X-Forwarded-Uri: ${path}`,
      `X-Forwarded-Host: ${host}`,
    ],
  ],
  ["x-rewrite-url", (path) => [`X-Rewrite-URL: ${path}`]],
  ["x-envoy-original-path", (path) => [`X-Envoy-Original-Path: ${path}`]],
];

/** A client without a token names a public path in such fields, for a protected one: what asks may pass them on. */
function askedAs(target: Target, { get }: RequestWriter): Check {
  const { publicPath = "/", host } = target;
  return {
    name: "path/public-by-question",
    tries: QUESTIONS.map(([what, fields]) => ({
      what,
      bytes: (mark) =>
        get(target, protectedPath(target, mark), fields(`${publicPath}${mark}`, host)),
    })),
    expectation: refusedOrUnauthorized,
    skip: target.publicPath === undefined ? "--public is not set" : undefined,
  };
}

/** Paths that end with the suffix (`end`, such as `.css`) for one server and not for another; `path` is protected. */
const SUFFIXES: readonly (readonly [name: string, spell: (path: string, end: string) => string])[] =
  [
    ["in-query", (path, end) => `${path}?a=${end}`],
    ["in-fragment", (path, end) => `${path}#${end}`],
    ["behind-semicolon", (path, end) => `${path};${end}`],
    ["behind-encoded-semicolon", (path, end) => `${path}%3b${end}`],
    ["behind-encoded-question-mark", (path, end) => `${path}%3f${end}`],
    ["behind-encoded-fragment", (path, end) => `${path}%23${end}`],
    ["behind-nul", (path, end) => `${path}%00${end}`],
    ["behind-line-end", (path, end) => `${path}%0a${end}`],
    ["behind-back-slash", (path, end) => `${path}\\${end}`],
    ["behind-encoded-slash", (path, end) => `${path}%2f..%2f${end}`],
    ["encoded-twice", (path, end) => `${path}${end.replace(end.charAt(0), encodedTwice)}`],
    ["before-segment", (path, end) => `${path}${end}/b`],
    ["before-line-end", (path, end) => `${path}${end}%0a`],
    ["before-more", (path, end) => `${path}${end}x`],
    ["before-dots", (path, end) => `${path}${end}/../b`],
  ];

function encodedTwice(character: string): string {
  return `%25${character.charCodeAt(0).toString(16)}`;
}

/**
 * These paths match a regular expression for public paths only if it is applied to a different text than the backend's
 * path.
 */
function suffixChecks(target: Target, { get }: RequestWriter): Check[] {
  const { publicSuffix = ".css" } = target;
  const skip = target.publicSuffix === undefined ? "--public-suffix is not set" : undefined;
  return SUFFIXES.map(([name, spell]) =>
    single(
      `path/suffix-${name}`,
      refusedOrUnauthorized,
      (mark) => get(target, spell(protectedPath(target, mark), publicSuffix), []),
      skip,
    ),
  );
}

/** Sends a request target that crashes proxies whose URL parser throws. It must be the last check. */
export function brokenAuthority(target: Target, { get, refused }: RequestWriter = HTTP1): Check {
  return single("path/broken-authority", refused, () =>
    get(target, "http://[", [authorization(target)]),
  );
}

function queryCheck(target: Target, { get }: RequestWriter): Check {
  const rest = "a%20b?q=/../%2e%2e;c&d=%zz&&e";
  const expectation = arrives((arrival, mark) =>
    arrival.url.endsWith(`/selftest-${mark}/${rest}`)
      ? pass("arrived as it was sent")
      : fail(`it arrived as ${describeArrival(arrival)}`),
  );
  return single("path/path-and-query-as-sent", expectation, (mark) =>
    get(target, protectedPath(target, mark, rest), [authorization(target)]),
  );
}
