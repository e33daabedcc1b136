import { IDENTITY_PRESETS } from "../upstream/headers/identity-headers.ts";
import type { Check, Expectation, Attempt } from "./check-result.ts";
import {
  arrives,
  fail,
  FORGED_ADDRESS,
  forgery,
  intact,
  pass,
  refused,
  skip,
  withoutForgery,
} from "./expectations.ts";
import { ANSWER_WITH_HOPS } from "./recording-backend.ts";
import { authorization, chunked, protectedPath, request, type Target } from "./deployment.ts";

/** Headers that Sallyport can be configured to set. */
export const PRESET_NAMES: readonly string[] = Object.values(IDENTITY_PRESETS).flatMap((preset) =>
  Object.values(preset),
);

const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** Headers before a body of four bytes. */
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

/** Spellings that some readers take for one name: CGI, WSGI and PHP fold `_` and `.` into `-`. */
function aliases(name: string): string[] {
  const spellings = [
    name,
    name.toLowerCase(),
    name.toUpperCase(),
    name.replaceAll("-", "_"),
    name.replace("-", "_"),
    name.replaceAll("-", "."),
  ];
  // The last one occurs twice, for readers that take the first or the last.
  return [...new Set(spellings), name];
}

/** Clients must not choose their identity, their address or the properties of their connection. */
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

/** Headers that only Sallyport may write, sent by the client in every way. */
function forgeryChecks(target: Target): Check[] {
  const forged = (mark: string): string[] =>
    target.identityNames.flatMap(aliases).map((name) => `${name}: ${forgery(mark)}`);
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
      skip: target.publicPath === undefined ? "--public names no public path" : undefined,
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

/** What must not go further, and what must arrive as it was sent. */
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
      expectation: tokenStays(target),
    },
    check("two-cookies", cookies, (mark) =>
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

/** `Host` that is missing, doubled or malformed, and an expectation that nobody can meet. */
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

function forwarded(mark: string): string[] {
  const host = `${forgery(mark)}.example`;
  return [
    `X-Forwarded-For: ${FORGED_ADDRESS}`,
    `x-forwarded-for: ${FORGED_ADDRESS}`,
    `X-Forwarded-Host: ${host}`,
    `X-Forwarded-Proto: ${forgery(mark)}`,
    `X-Forwarded-Port: ${forgery(mark)}`,
    `X-Real-IP: ${FORGED_ADDRESS}`,
    `Forwarded: for=${FORGED_ADDRESS};host=${host};proto=http`,
  ];
}

function shadows(mark: string): string[] {
  const names = ["X_Forwarded_For", "X-Forwarded_Host", "X.Forwarded.Proto", "X_Real_IP"];
  return [...names, "X_Request_Id", "Content_Length", "Transfer_Encoding"].map(
    (name) => `${name}: ${forgery(mark)}`,
  );
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

/** A client that lists the identity headers in `Connection` asks to have the true ones removed. */
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
      seenIdentity.length === 0 ? "no header was seen that carries the token's subject" : undefined,
  };
}

function tokenStays({ token }: Target): Expectation {
  return arrives(({ fields }) => {
    const names = fields.filter(([, value]) => value.includes(token)).map(([name]) => name);
    return names.length === 0
      ? pass("arrived without the token")
      : fail(`the backend got the token in ${names.join(", ")}; does the route say keep?`);
  });
}

const cookies: Expectation = arrives(({ fields }, mark) => {
  const values = fields
    .filter(([name]) => name.toLowerCase() === "cookie")
    .map(([, value]) => value);
  const pairs = values.join(";").split(/[;,] */);
  return pairs.join(";") === `a=${mark};b=1;c=${mark}`
    ? pass("arrived whole")
    : fail(`the backend got ${pairs.length} of 3 cookies`);
});

/** Hop-by-hop headers of a backend must not reach the client. */
function hopsInAnswer(target: Target): Check {
  const told = /^(?:x-selftest-hop|proxy-authenticate|keep-alive: timeout=4711)/gim;
  return {
    name: "headers/hop-by-hop-in-answer",
    tries: [
      {
        what: "answer",
        bytes: (mark) => {
          const line = `GET ${protectedPath(target, mark, ANSWER_WITH_HOPS)} HTTP/1.1`;
          const head = [line, `Host: ${target.host}`, authorization(target), "Connection: close"];
          return request(head);
        },
      },
    ],
    expectation: {
      close: false,
      judge({ answers: [first], raw }) {
        if (first === undefined) return fail("no answer");
        if (first.status !== 200) return skip(`${first.status}, not the backend's answer`);
        const leaked = raw.match(told) ?? [];
        return leaked.length === 0
          ? pass("the client got none of them")
          : fail(`the client got ${leaked.join(", ")}`);
      },
    },
    skip: target.ownBackend ? undefined : "only --backend answers with such headers",
  };
}
