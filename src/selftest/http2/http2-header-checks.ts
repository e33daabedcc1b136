import type { Check, Expectation } from "../check-result.ts";
import { authorization, protectedPath, type Target } from "../deployment.ts";
import {
  allCookies,
  forgery,
  intact,
  refusedStream,
  withoutForgery,
  withoutToken,
} from "../expectations.ts";
import { forgedIdentities, forwarded, shadows } from "../forged-fields.ts";
import { hopsInAnswer } from "../header-checks.ts";
import type { Field } from "./http2-frames.ts";
import { fieldsOf, HTTP2, onStream, pseudo, type StreamRequest } from "./http2-requests.ts";

/** Additional fields of extended CONNECT for a WebSocket (RFC 8441 §5). */
const WEBSOCKET: readonly Field[] = [[":protocol", "websocket"]];
const VERSION: Field = ["sec-websocket-version", "13"];

/** Values for `:authority` and `Host`. */
const HOSTS: readonly (readonly [
  name: string,
  hosts: (host: string) => readonly (readonly [name: ":authority" | "host", value: string])[],
])[] = [
  ["other", (host) => [named(host), ["host", "other.example"]]],
  ["other-authority", (host) => [named("other.example"), ["host", host]]],
  ["two", (host) => [named(host), ["host", host], ["host", "other.example"]]],
  ["none", () => []],
  ["empty", () => [named("")]],
  ["list", (host) => [named(`${host}, other.example`)]],
  ["user", (host) => [named(`user@${host}`)]],
  ["path", (host) => [named(`${host}/x`)]],
];

const named = (host: string): readonly [":authority", string] => [":authority", host];

/** Builds a request on one stream with a valid token. */
type Build = (mark: string, fields: readonly Field[]) => StreamRequest;

/** Returns checks that clients cannot forge their identity, their address or their host over HTTP/2 either. */
export function http2HeaderChecks(target: Target): Check[] {
  return [...forgeryChecks(target), ...passageChecks(target), ...hostChecks(target)];
}

function check(
  name: string,
  expectation: Expectation,
  build: (mark: string) => StreamRequest,
  method = "GET",
): Check {
  const bytes = (mark: string): string => onStream(1, build(mark));
  return {
    name: `headers/${name}`,
    tries: [{ what: name, bytes, methods: [method] }],
    expectation,
  };
}

const get =
  (target: Target): Build =>
  (mark, fields) => ({
    fields: [...pseudo(target, protectedPath(target, mark)), ...token(target), ...fields],
  });

/** Builds a POST with a body in two DATA frames. */
const post =
  (target: Target, trailers?: readonly Field[]): Build =>
  (mark, fields) => ({
    fields: [...pseudo(target, protectedPath(target, mark), "POST"), ...token(target), ...fields],
    body: ["bo", "dy"],
    ...(trailers === undefined ? {} : { trailers }),
  });

const webSocket =
  (target: Target): Build =>
  (mark, fields) => {
    const head = [...pseudo(target, protectedPath(target, mark), "CONNECT"), ...WEBSOCKET];
    return { fields: [...head, VERSION, ...token(target), ...fields], body: [] };
  };

function token(target: Target): Field[] {
  return fieldsOf([authorization(target)]);
}

function forgeryChecks(target: Target): Check[] {
  const forged = (mark: string): Field[] => fieldsOf(forgedIdentities(target, mark));
  const forging = (name: string, build: (mark: string) => StreamRequest, method?: string) =>
    check(name, withoutForgery, build, method);
  const open = pseudo(target, "");
  return [
    forging("identity", (mark) => get(target)(mark, forged(mark))),
    {
      ...forging("identity-on-public-path", (mark) => {
        const path: Field = [":path", `${target.publicPath ?? "/"}selftest-${mark}/attack`];
        return { fields: [...open.slice(0, -1), path, ...forged(mark)] };
      }),
      skip: target.publicPath === undefined ? "--public is not set" : undefined,
    },
    forging("identity-on-websocket", (mark) => webSocket(target)(mark, forged(mark)), "CONNECT"),
    forging(
      "identity-with-expect",
      (mark) => post(target)(mark, [["expect", "100-continue"], ...forged(mark)]),
      "POST",
    ),
    forging("identity-as-trailer", (mark) => post(target, forged(mark))(mark, []), "POST"),
    forging("forwarded", (mark) => get(target)(mark, fieldsOf(forwarded(mark)))),
    forging("shadows", (mark) => get(target)(mark, fieldsOf(shadows(mark)))),
    forging("line-end-in-value", (mark) =>
      get(target)(mark, [["x-selftest", `a\r\nX-Auth-Subject: ${forgery(mark)}`]]),
    ),
    forging("line-feed-in-value", (mark) =>
      get(target)(mark, [["x-selftest", `a\nX-Auth-Subject: ${forgery(mark)}`]]),
    ),
    forging("nul-in-value", (mark) => get(target)(mark, [["x-selftest", `a\0${forgery(mark)}`]])),
    forging("line-end-in-name", (mark) =>
      get(target)(mark, [[`x-a: b\r\nx-auth-subject`, forgery(mark)]]),
    ),
    forging("colon-in-name", (mark) => get(target)(mark, [["x-auth-subject:", forgery(mark)]])),
    forging("blank-behind-name", (mark) => get(target)(mark, [["x-auth-subject ", forgery(mark)]])),
    forging("empty-name", (mark) => get(target)(mark, [["", forgery(mark)]])),
  ];
}

function passageChecks(target: Target): Check[] {
  const kept = withoutToken(target);
  const stays = check("token-stays-here", kept, (mark) => get(target)(mark, []));
  const expecting: Field = ["expect", "100-continue"];
  return [
    hopsInAnswer(target, HTTP2),
    {
      ...stays,
      tries: [
        ...stays.tries,
        ...check("WebSocket", kept, (mark) => webSocket(target)(mark, []), "CONNECT").tries,
        ...check("Expect", kept, (mark) => post(target)(mark, [expecting]), "POST").tries,
      ],
    },
    check("three-cookies", allCookies, (mark) =>
      get(target)(mark, [
        ["cookie", `a=${mark}`],
        ["cookie", "b=1"],
        ["cookie", `c=${mark}`],
      ]),
    ),
    check(
      "prototype-names",
      intact("GET", () => ""),
      (mark) => get(target)(mark, fieldsOf(["__proto__: 1", "constructor: 1", "prototype: 1"])),
    ),
  ];
}

function hostChecks(target: Target): Check[] {
  return HOSTS.map(([name, hosts]) =>
    check(`host-${name}`, refusedStream, (mark) => {
      const [method, scheme, , path] = pseudo(target, protectedPath(target, mark));
      const given = hosts(target.host);
      const rest = [...given.filter(([each]) => each === "host"), ...token(target)];
      const authority = given.filter(([each]) => each === ":authority");
      const fields = [method, scheme, ...authority, path, ...rest];
      return { fields: fields.filter((field) => field !== undefined) };
    }),
  );
}
