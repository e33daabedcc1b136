import type { Check, Expectation, Attempt } from "./check-result.ts";
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
import { forgedIdentities, forwarded, shadows } from "./forged-fields.ts";
import { ANSWER_WITH_HOPS } from "./recording-backend.ts";
import { authorization, chunked, protectedPath, request, type Target } from "./deployment.ts";
import { HTTP1, type RequestWriter } from "./attack-writer.ts";

const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** Headers of a request with `Expect` and a body of four bytes. */
const EXPECT = ["Connection: close", "Expect: 100-continue", "Content-Length: 4"];

const HOSTS: readonly (readonly [name: string, hosts: (host: string) => readonly string[]])[] = [
  ["two", (host) => [`Host: ${host}`, "Host: other.example"]],
  ["same-twice", (host) => [`Host: ${host}`, `host: ${host}`]],
  ["none", () => []],
  ["empty", () => ["Host:"]],
  ["list", (host) => [`Host: ${host}, other.example`]],
  ["user", (host) => [`Host: user@${host}`]],
  ["path", (host) => [`Host: ${host}/x`]],
];

/** Returns checks that clients cannot forge their identity, their address or the properties of their connection. */
export function headerChecks(target: Target): Check[] {
  return [...forgeryChecks(target), ...passageChecks(target), ...hostChecks(target)];
}

function get(target: Target, mark: string, headers: readonly string[], method = "GET"): string[] {
  return [
    `${method} ${protectedPath(target, mark)} HTTP/1.1`,
    `Host: ${target.host}`,
    authorization(target),
    ...headers,
  ];
}

function check(name: string, expectation: Expectation, bytes: Attempt["bytes"]): Check {
  return { name: `headers/${name}`, tries: [{ what: name, bytes }], expectation };
}

/** Headers that only Sallyport may set, sent by the client in every way. */
function forgeryChecks(target: Target): Check[] {
  const forged = (mark: string): string[] => forgedIdentities(target, mark);
  const forging = (name: string, bytes: Attempt["bytes"]) => check(name, withoutForgery, bytes);
  const plain = (name: string, headers: (mark: string) => string[]): Check =>
    forging(name, (mark) => request(get(target, mark, headers(mark))));
  const body = ["Connection: close", "Transfer-Encoding: chunked", "Trailer: X-Selftest"];
  const named = namedIn(target);
  return [
    plain("identity", (mark) => ["Connection: close", ...forged(mark)]),
    {
      ...forging("identity-on-public-path", (mark) => {
        const line = `GET ${target.publicPath ?? "/"}selftest-${mark}/attack HTTP/1.1`;
        return request([line, `Host: ${target.host}`, "Connection: close", ...forged(mark)]);
      }),
      skip: target.publicPath === undefined ? "--public is not set" : undefined,
    },
    plain("identity-named-in-connection", (mark) => [named, ...forged(mark)]),
    plain("identity-on-upgrade", (mark) => [...UPGRADE, ...forged(mark)]),
    forging("identity-with-expect", (mark) =>
      request(get(target, mark, [...EXPECT, ...forged(mark)], "POST"), "body"),
    ),
    forging("identity-as-trailer", (mark) =>
      request(get(target, mark, body, "POST"), chunked("body", forged(mark))),
    ),
    identityKept(target, (mark) => request(get(target, mark, [named]))),
    plain("forwarded", (mark) => ["Connection: close", ...forwarded(mark)]),
    plain("shadows", (mark) => ["Connection: close", ...shadows(mark)]),
    plain("hop-by-hop", hops),
  ];
}

function namedIn({ identityNames }: Target): string {
  return ["Connection: close", ...identityNames].join(", ");
}

/** Headers that must not be forwarded, and headers that must arrive as they were sent. */
function passageChecks(target: Target): Check[] {
  const send = (mark: string, headers: readonly string[]): string =>
    request(get(target, mark, headers));
  return [
    hopsInAnswer(target),
    {
      name: "headers/token-stays-here",
      tries: [
        { what: "GET", bytes: (mark) => send(mark, ["Connection: close"]) },
        { what: "upgrade", bytes: (mark) => send(mark, UPGRADE) },
        { what: "Expect", bytes: (mark) => request(get(target, mark, EXPECT, "POST"), "body") },
      ],
      expectation: withoutToken(target),
    },
    check("two-cookies", allCookies, (mark) =>
      send(mark, ["Connection: close", `Cookie: a=${mark}; b=1`, `Cookie: c=${mark}`]),
    ),
    check(
      "prototype-names",
      intact("GET", () => ""),
      (mark) => {
        const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
        return send(mark, ["Connection: close", ...names.map((name) => `${name}: 1`)]);
      },
    ),
  ];
}

/** A missing, repeated or malformed `Host`, and an unknown expectation in `Expect`. */
function hostChecks(target: Target): Check[] {
  return [
    ...HOSTS.map(([name, hosts]) =>
      check(`host-${name}`, refused, (mark) => {
        const [line = "", , ...rest] = get(target, mark, []);
        return request([line, ...hosts(target.host), ...rest]);
      }),
    ),
    check("expect-other", refused, (mark) =>
      request(get(target, mark, ["Expect: miracles", "Content-Length: 0"], "POST")),
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
function identityKept({ seenIdentity }: Target, bytes: Attempt["bytes"]): Check {
  return {
    name: "headers/identity-not-taken-away",
    tries: [{ what: "Connection", bytes }],
    expectation: arrives(({ fields }) => {
      const missing = seenIdentity.filter(
        (name) => !fields.some(([each]) => each.toLowerCase() === name.toLowerCase()),
      );
      return missing.length === 0
        ? pass(`the backend still gets ${seenIdentity.join(", ")}`)
        : fail(`the backend no longer gets ${missing.join(", ")}`);
    }),
    skip:
      seenIdentity.length === 0 ? "the backend got no header with the token's subject" : undefined,
  };
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

export function hopsInAnswer(target: Target, { get }: RequestWriter = HTTP1): Check {
  return {
    name: "headers/hop-by-hop-in-answer",
    tries: [
      {
        what: "answer",
        bytes: (mark) =>
          get(target, protectedPath(target, mark, ANSWER_WITH_HOPS), [authorization(target)]),
      },
    ],
    expectation: hopsStayBehind,
    skip: target.ownBackend ? undefined : "only --backend answers with such headers",
  };
}
