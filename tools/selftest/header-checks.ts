import { type Check, type Expectation, single } from "./check-result.ts";
import {
  allCookies,
  arrives,
  fail,
  forgery,
  intact,
  pass,
  refused,
  skip,
  withoutForgery,
  withoutToken,
} from "./expectations.ts";
import { forgedIdentities, forwarded, shadows } from "./forgeries.ts";
import { ANSWER_WITH_HOPS } from "./recording-backend.ts";
import { authorization, protectedPath, request, type Target } from "./deployment.ts";
import { HTTP1, type RequestWriter } from "./raw-exchange.ts";

const HOSTS: readonly (readonly [name: string, hosts: (host: string) => readonly string[]])[] = [
  ["two", (host) => [`Host: ${host}`, "Host: other.example"]],
  ["same-twice", (host) => [`Host: ${host}`, `host: ${host}`]],
  ["none", () => []],
  ["empty", () => ["Host:"]],
  ["list", (host) => [`Host: ${host}, other.example`]],
  ["user", (host) => [`Host: user@${host}`]],
  ["path", (host) => [`Host: ${host}/x`]],
];

const EXPECT = "Expect: 100-continue";

/** Returns checks that clients cannot forge their identity, their address or the properties of their connection. */
export function headerChecks(target: Target): Check[] {
  return [
    ...forgeryChecks(target, HTTP1),
    ...passageChecks(target, HTTP1),
    ...HOSTS.map(([name, hosts]) =>
      single(`headers/host-${name}`, refused, (mark) =>
        http1Bytes(target, mark, [], "GET", hosts(target.host)),
      ),
    ),
    single("headers/expect-other", refused, (mark) =>
      http1Bytes(target, mark, ["Expect: miracles", "Content-Length: 0"], "POST"),
    ),
  ];
}

/** Returns the bytes of a request over HTTP/1.1 with exactly these headers besides the token. */
function http1Bytes(
  target: Target,
  mark: string,
  headers: readonly string[],
  method = "GET",
  hosts: readonly string[] = [`Host: ${target.host}`],
): string {
  const line = `${method} ${protectedPath(target, mark)} HTTP/1.1`;
  return request([line, ...hosts, authorization(target), ...headers]);
}

/** Headers that only the proxy may set, sent by the client in every way. */
export function forgeryChecks(target: Target, writer: RequestWriter): Check[] {
  const forged = (mark: string): string[] => forgedIdentities(target, mark);
  const path = (mark: string): string => protectedPath(target, mark);
  const token = authorization(target);
  const forging = (name: string, bytes: (mark: string) => string, skip?: string): Check =>
    single(`headers/${name}`, withoutForgery, bytes, skip);
  const getting = (name: string, headers: (mark: string) => string[], skip?: string): Check =>
    forging(name, (mark) => writer.get(target, path(mark), [token, ...headers(mark)]), skip);
  const http1Only = (...checks: Check[]): Check[] => (writer === HTTP1 ? checks : []);
  const { publicPath, identityNames } = target;
  const named = ["Connection: close", ...identityNames].join(", ");
  const unnamed = identityNames.length === 0 ? "--identity is not set" : undefined;
  return [
    getting("identity", forged, unnamed),
    forging(
      "identity-on-public-path",
      (mark) => writer.get(target, `${publicPath ?? "/"}selftest-${mark}/attack`, forged(mark)),
      publicPath === undefined ? "--public is not set" : unnamed,
    ),
    ...http1Only(
      forging(
        "identity-named-in-connection",
        (mark) => http1Bytes(target, mark, [named, ...forged(mark)]),
        unnamed,
      ),
    ),
    forging(
      `identity-on-${writer.webSocketName.toLowerCase()}`,
      (mark) => writer.webSocket(target, path(mark), [token, ...forged(mark)]),
      unnamed,
    ),
    forging(
      "identity-with-expect",
      (mark) => writer.post(target, path(mark), [token, EXPECT, ...forged(mark)]),
      unnamed,
    ),
    forging(
      "identity-as-trailer",
      (mark) => writer.post(target, path(mark), [token], forged(mark)),
      unnamed,
    ),
    ...http1Only(identityKept(target, (mark) => http1Bytes(target, mark, [named]))),
    getting("forwarded", forwarded),
    getting("shadows", shadows),
    ...http1Only(forging("hop-by-hop", (mark) => http1Bytes(target, mark, hops(mark)))),
  ];
}

/** Headers that must not be forwarded, and headers that must arrive as they were sent. */
export function passageChecks(target: Target, writer: RequestWriter): Check[] {
  const path = (mark: string): string => protectedPath(target, mark);
  const token = authorization(target);
  const [cookies, cookieLines] =
    writer === HTTP1
      ? (["two-cookies", (mark: string) => [`a=${mark}; b=1`, `c=${mark}`]] as const)
      : (["three-cookies", (mark: string) => [`a=${mark}`, "b=1", `c=${mark}`]] as const);
  const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
  return [
    single(
      "headers/hop-by-hop-in-answer",
      hopsStayBehind,
      (mark) => writer.get(target, protectedPath(target, mark, ANSWER_WITH_HOPS), [token]),
      target.ownBackend ? undefined : "only --backend answers with such headers",
    ),
    {
      name: "headers/token-stays-here",
      tries: [
        { what: "GET", bytes: (mark) => writer.get(target, path(mark), [token]) },
        {
          what: writer.webSocketName,
          bytes: (mark) => writer.webSocket(target, path(mark), [token]),
        },
        { what: "Expect", bytes: (mark) => writer.post(target, path(mark), [token, EXPECT]) },
      ],
      expectation: withoutToken(target),
    },
    single(`headers/${cookies}`, allCookies, (mark) => {
      const lines = cookieLines(mark).map((cookie) => `Cookie: ${cookie}`);
      return writer.get(target, path(mark), [token, ...lines]);
    }),
    single(
      "headers/prototype-names",
      intact("GET", () => ""),
      (mark) => writer.get(target, path(mark), [token, ...names.map((name) => `${name}: 1`)]),
    ),
  ];
}

/** Headers for the next hop only (RFC 9110 §7.6.1). */
function hops(mark: string): string[] {
  const names = ["X-Hop", "X-Second", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization"];
  return [
    "Connection: close, X-Hop",
    "Connection: X-Second",
    ...[...names, "TE"].map((name) => `${name}: ${forgery(mark)}`),
  ];
}

/** A client that lists the identity headers in `Connection` asks the proxy to remove the genuine ones. */
function identityKept({ seenIdentity }: Target, bytes: (mark: string) => string): Check {
  return single(
    "headers/identity-not-taken-away",
    arrives(({ fields }) => {
      const missing = seenIdentity.filter(
        (name) => !fields.some(([each]) => each.toLowerCase() === name.toLowerCase()),
      );
      return missing.length === 0
        ? pass(`the backend still gets ${seenIdentity.join(", ")}`)
        : fail(`the backend no longer gets ${missing.join(", ")}`);
    }),
    bytes,
    seenIdentity.length === 0 ? "the backend got no header with the token's subject" : undefined,
  );
}

/** Passes if no hop-by-hop header of the backend reaches the client. */
const hopsStayBehind: Expectation = {
  close: false,
  judge({ answers: [first], raw }) {
    if (first === undefined) return fail("no answer");
    if (first.status !== 200) return skip(`${first.status}, not the backend's answer`);
    const told = /^(?:x-selftest-hop|proxy-authenticate|keep-alive: timeout=4711)/gim;
    const leaked = raw.match(told) ?? [];
    return leaked.length === 0
      ? pass("the client got none of them")
      : fail(`the client got ${leaked.join(", ")}`);
  },
};
