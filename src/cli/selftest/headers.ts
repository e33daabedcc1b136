import { IDENTITY_PRESETS } from "../../upstream/identity-headers.ts";
import type { Check, Expectation, Try } from "./check.ts";
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
import { authorization, chunked, protectedPath, request, type Target } from "./target.ts";

/** Names that Sallyport can be told to set. */
export const PRESET_NAMES: readonly string[] = Object.values(IDENTITY_PRESETS).flatMap((preset) =>
  Object.values(preset),
);

const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** What is said before a body of four bytes. */
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

/** Spellings that some reader takes for one name: CGI, WSGI and PHP fold `_` and `.` into `-`. */
function aliases(name: string): string[] {
  const spellings = [
    name,
    name.toLowerCase(),
    name.toUpperCase(),
    name.replaceAll("-", "_"),
    name.replace("-", "_"),
    name.replaceAll("-", "."),
  ];
  // The last one is there twice, for readers that take the first or the last.
  return [...new Set(spellings), name];
}

/** Who is asking, from where, and over which connection is not for the client to say. */
export function headerChecks(target: Target): Check[] {
  const forged = (mark: string): string[] =>
    target.identityNames.flatMap(aliases).map((name) => `${name}: ${forgery(mark)}`);
  const get = (mark: string, headers: readonly string[], method = "GET"): string[] => [
    `${method} ${protectedPath(target, mark)} HTTP/1.1`,
    `Host: ${target.host}`,
    authorization(target),
    ...headers,
  ];
  const check = (name: string, expectation: Expectation, bytes: Try["bytes"]): Check => ({
    name: `headers/${name}`,
    tries: [{ what: name, bytes }],
    expectation,
  });
  const forging = (name: string, bytes: Try["bytes"]): Check => check(name, withoutForgery, bytes);
  const named = ["Connection: close", ...target.identityNames].join(", ");
  const body = ["Connection: close", "Transfer-Encoding: chunked", "Trailer: X-Selftest"];

  return [
    forging("identity", (mark) => request(get(mark, ["Connection: close", ...forged(mark)]))),
    {
      ...forging("identity-on-public-path", (mark) => {
        const line = `GET ${target.publicPath ?? "/"}selftest-${mark}/attack HTTP/1.1`;
        return request([line, `Host: ${target.host}`, "Connection: close", ...forged(mark)]);
      }),
      skip: target.publicPath === undefined ? "--public names no public path" : undefined,
    },
    forging("identity-named-in-connection", (mark) => request(get(mark, [named, ...forged(mark)]))),
    forging("identity-on-upgrade", (mark) => request(get(mark, [...UPGRADE, ...forged(mark)]))),
    forging("identity-with-expect", (mark) =>
      request(get(mark, [...EXPECT, ...forged(mark)], "POST"), "body"),
    ),
    forging("identity-as-trailer", (mark) =>
      request(get(mark, body, "POST"), chunked("body", forged(mark))),
    ),
    notTakenAway(target, (mark) => request(get(mark, [named]))),
    forging("forwarded", (mark) => request(get(mark, ["Connection: close", ...forwarded(mark)]))),
    forging("shadows", (mark) => request(get(mark, ["Connection: close", ...shadows(mark)]))),
    forging("hop-by-hop", (mark) => request(get(mark, hops(mark)))),
    hopsInAnswer(target),
    {
      name: "headers/token-stays-here",
      tries: [
        { what: "GET", bytes: (mark) => request(get(mark, ["Connection: close"])) },
        { what: "upgrade", bytes: (mark) => request(get(mark, UPGRADE)) },
        { what: "Expect", bytes: (mark) => request(get(mark, EXPECT, "POST"), "body") },
      ],
      expectation: tokenStays(target),
    },
    check("two-cookies", cookies, (mark) =>
      request(get(mark, ["Connection: close", `Cookie: a=${mark}; b=1`, `Cookie: c=${mark}`])),
    ),
    check(
      "prototype-names",
      intact("GET", () => ""),
      (mark) => {
        const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
        return request(get(mark, ["Connection: close", ...names.map((name) => `${name}: 1`)]));
      },
    ),
    ...HOSTS.map(([name, hosts]) =>
      check(`host-${name}`, refused, (mark) => {
        const [line = "", , ...rest] = get(mark, []);
        return request([line, ...hosts(target.host), ...rest]);
      }),
    ),
    check("expect-other", refused, (mark) =>
      request(get(mark, ["Expect: miracles", "Content-Length: 0"], "POST")),
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

/** Meant for the next hop alone (RFC 9110 §7.6.1). */
function hops(mark: string): string[] {
  const names = ["X-Hop", "X-Second", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization"];
  return [
    "Connection: close, X-Hop",
    "Connection: X-Second",
    ...[...names, "TE"].map((name) => `${name}: ${forgery(mark)}`),
  ];
}

/** A client that names the identity headers in `Connection` asks to have the true ones removed. */
function notTakenAway({ seenIdentity }: Target, bytes: Try["bytes"]): Check {
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

/** What a backend says about its connection is nobody else's business. */
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
