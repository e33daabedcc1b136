import fc from "fast-check";
import { HTTP1, type RequestWriter } from "../../tools/selftest/raw-exchange.ts";
import { END_STREAM, FRAME, frame } from "../../tools/selftest/http2/http2-frames.ts";
import { HTTP2 } from "../../tools/selftest/http2/http2-requests.ts";
import { TRUSTED_PEER } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { PLAIN } from "../wire/dial.ts";
import { manyFields, run } from "./repeated.ts";

export interface Head {
  /** The path and the query. */
  readonly target: string;
  /** Fields, `Name: value`. */
  readonly lines?: readonly string[];
  /** Whether it comes from a trusted proxy. */
  readonly trusted?: boolean;
  /** Fields of the backend's answer. */
  readonly answered?: readonly string[];
}

const END = frame(FRAME.data, END_STREAM, 1).toString("latin1");

/** The ways to send a head: a request or the handshake of a WebSocket, over HTTP/1.1 or HTTP/2 (RFC 8441). */
const FORMS = {
  request: { frames: false, write: HTTP1.get },
  handshake: { frames: false, write: HTTP1.webSocket },
  stream: { frames: true, write: HTTP2.get },
  // It ends at once, because the time until an open one is given up costs processor time, too.
  tunnel: { frames: true, write: (...head) => HTTP2.webSocket(...head) + END },
} as const satisfies Record<string, { frames: boolean; write: RequestWriter["get"] }>;

export type HeadForm = keyof typeof FORMS;
export const HEAD_FORMS = [
  "request",
  "handshake",
  "stream",
  "tunnel",
] as const satisfies HeadForm[];

/** The writers use no more than the host. */
const LISTENER = {
  host: "localhost",
  token: "",
  protectedPath: "/",
  publicPath: undefined,
  asks: false,
  publicSuffix: undefined,
  identityNames: [],
  seenIdentity: [],
  publicKeys: [],
  keyAddress: "",
  ownBackend: false,
};
/** Makes a client of this address a trusted proxy, whose fields about its own client count. */
const FROM_PROXY = { trusted: true, header: `PROXY TCP4 ${TRUSTED_PEER} 127.0.0.1 1000 2000\r\n` };

/** Returns the case that sends a head in one of the forms. */
export function headCase(form: HeadForm, head: Head): Case {
  const { target, lines = [], trusted = false, answered = [] } = head;
  const { frames, write } = FORMS[form];
  return {
    dial: { ...PLAIN, ...(trusted && FROM_PROXY) },
    frames,
    patient: false,
    rounds: [[write(LISTENER, target, lines)]],
    answer: { interim: "", fields: answered.map((line) => `${line}\r\n`).join("") },
  };
}

/** The maximum length of a head, within the limit of the subject. */
const MOST_BYTES = 14_000;
const MOST_FIELDS = 240;

/** What delimits, ends or may be cut off in a path, as such and encoded, and plain parts. All occur in valid paths. */
const PATH_UNITS = [
  ...["a", "aaaaaaaaaaaaaaaa", "x/", "/a", "/", "//", "...", "-", "~", "%20", "%20", "%20x", "%2F"],
  ...["%5C", "%5c", "%3B", ";", ";a", ";a=b", "%3F", "%23", "%61", "%40", "%C3%A9", "%E2%82%AC"],
  ...["|", "[", "]", "{", "^", "!", "$", "&", "'", "(", "*", "+", ",", "=", ":", "@"],
];
/** What makes a path invalid. */
const INVALID_UNITS = [
  ...[".", "..", "/.a", "%", "%2", "%2E", "%25", "%00", "%ff", "%7F", "\\", "<", '"', "\u00e9"],
];
const PATH_ENDS = ["x", "x", "", "/", "y", "%20", ";", "/..", "%2F..", "%", "%2", "\\", "?"];
const PREFIXES = [
  ...["/encoded/", "/sent/", "/sent/", "/public/", "/places/", "/prefixed/", "/x/", "/x/y/", "/"],
  ...["/api/authenticate", "/api/authenticate/"],
] as const;

const pathUnit = fc.constantFrom(...PATH_UNITS);
/**
 * A few delimiters, of which each may double the readings of a path, and then one or two units over and over: text that is
 * read many times must also be long.
 */
const mixture = fc
  .record({
    once: fc.array(pathUnit, { maxLength: 8, size: "max" }),
    again: fc.array(
      fc.oneof({ arbitrary: pathUnit, weight: 8 }, fc.constantFrom(...INVALID_UNITS)),
      { minLength: 1, maxLength: 2 },
    ),
    bytes: fc.constantFrom(300, 3_000, MOST_BYTES, MOST_BYTES),
    end: fc.constantFrom(...PATH_ENDS),
  })
  .map(({ once, again, bytes, end }) => {
    const unit = again.join("");
    return once.join("") + unit.repeat(Math.floor(bytes / unit.length)) + end;
  });

const target = fc.oneof(
  {
    arbitrary: fc
      .tuple(fc.constantFrom(...PREFIXES), mixture)
      .map(([prefix, text]) => prefix + text.replaceAll(/[?#]/g, "")),
    weight: 3,
  },
  fc
    .tuple(fc.constantFrom("/places/a", "/public/a"), mixture)
    .map(([path, text]) => `${path}?${text}`),
  run(MOST_BYTES).map((text) => `/places/a?token=&${text.replaceAll(/[^!-~]/g, "&")}`),
);

/** Fields that the subject reads because of its routes, or because a trusted proxy sent them. */
const NAMES = [
  ...["X-Forwarded-For", "X-Forwarded-Prefix", "X-Forwarded-Host", "X-Forwarded-Proto"],
  ...["X-Forwarded-Port", "Forwarded", "X-Real-IP", "Via", "CDN-Loop", "Cookie", "Cookie"],
  ...["Origin", "Referer", "Authorization", "X-Token", "X-Tenant", "X-Request-Id", "Connection"],
  ...["Access-Control-Request-Headers", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions"],
  ...["traceparent", "tracestate", "Accept", "Accept-Encoding", "Content-Type", "Cache-Control"],
  ...["Sec-Fetch-Site", "Expect", "Range", "If-None-Match", "TE", "Trailer", "Link", "Priority"],
];
const VALUE_STARTS = [
  ...[
    "",
    "",
    "/",
    "session=a;",
    "https://",
    "https://page.test",
    "Bearer ",
    "bearer, ",
    "1.1.1.1,",
  ],
  ...[
    "base64url.bearer.authorization.k8s.io.",
    "for=",
    "eyJhbGciOiJFZERTQSJ9.",
    "a,",
    "sallyport-",
  ],
];
/** Besides those of `run`. */
const VALUE_UNITS = [
  ...["127.129.0.1,", "127.129.0.1, ", "for=127.129.0.1,", "[::1],", "session=a;", "session;"],
  ...[
    "bearer,",
    "bearer, a, ",
    "sallyport-1,",
    "a.pages.test",
    "base64url.bearer.authorization.k8s.io.,",
  ],
  ...["eyJ", "e30.", "trailers,", "//", "%20", "; ", "token=&"],
];
const value = fc
  .tuple(
    fc.constantFrom(...VALUE_STARTS),
    fc.oneof(
      run(MOST_BYTES),
      fc.constantFrom(...VALUE_UNITS).map((unit) => unit.repeat(MOST_BYTES / unit.length)),
    ),
  )
  .map(([start, text]) => (start + text).slice(0, MOST_BYTES));

const lines = fc.oneof(
  fc.tuple(fc.constantFrom(...NAMES), value).map(([name, text]) => [`${name}: ${text}`]),
  manyFields(NAMES, MOST_FIELDS, MOST_BYTES),
);

/** Fields of answers that the subject reads, most of them because of its `rewrite`. */
const ANSWERED = [
  ...["Location", "Content-Location", "Refresh", "Set-Cookie", "Set-Cookie", "Link", "Connection"],
  ...["Cache-Control", "Vary", "Keep-Alive", "WWW-Authenticate", "Access-Control-Allow-Origin"],
];
const ANSWER_STARTS = [
  ...[
    "",
    "",
    "/",
    "//",
    "http://localhost/",
    "5; url=",
    '5; url="',
    "5;",
    ".",
    "a=b; path=",
    "a; ;",
  ],
  ...["/public/", "timeout=", "a=b; Path = "],
];
/** The subject accepts answers of 64 KiB. */
const MOST_ANSWER_BYTES = 40_000;
const answered = fc
  .tuple(fc.constantFrom(...ANSWERED), fc.constantFrom(...ANSWER_STARTS), run(MOST_ANSWER_BYTES))
  .map(([name, start, text]) => [`${name}: ${start}${text}`]);

/** A head with one part that is as long as possible. */
const head: fc.Arbitrary<Head> = fc
  .tuple(
    fc.oneof(
      target.map((target): Head => ({ target })),
      fc
        .tuple(
          fc.constantFrom(
            "/places/a?b",
            "/prefixed/a",
            "/sent/a%20;b",
            "/public/a",
            "/tenants/a%2F;b",
          ),
          lines,
        )
        .map(([target, lines]): Head => ({ target, lines })),
      answered.map((answered): Head => ({ target: "/prefixed/a", answered })),
    ),
    fc.boolean(),
  )
  .map(([each, trusted]) => ({ ...each, trusted }));

/** Generates heads that are as long as the limit permits, of every form. Only their cost counts. */
export function heads(): fc.Arbitrary<Case> {
  return fc.tuple(fc.constantFrom(...HEAD_FORMS), head).map(([form, each]) => headCase(form, each));
}
