/**
 * Advisories of 2025 and 2026 about requests that two layers of a proxy understood differently: the class numbers are
 * those of the table in SECURITY.md. Each attack runs as a request and as a WebSocket, over HTTP/1.1 and HTTP/2,
 * because most of these faults were fixed on one of these roads and left open on another (13, 17).
 *
 * - 14, 15: a `Host` with an odd port, a final dot or another case finds another route (Traefik, heimdall).
 * - 16, 18: `%2F` and `%2f`, an encoded prefix, or `\..\` are read in one way by the check and in another by the
 *   rewrite (heimdall, fastify/http-proxy, Caddy).
 * - 20, 21: the absolute form and a `:path` without a slash are compared with nothing (fastify/express, grpc-go).
 * - 22: a declared length that does not fit the frames is passed on as framing (HAProxy, Envoy).
 * - 23, 24: a refused CONNECT, or an interim response, shifts the answers of a connection (Go, Netty).
 * - 28, 29: a trusted proxy names something else than an address, or a host ends an element of Forwarded (heimdall).
 * - 31: a client's identity headers pass where nothing sets the real ones (APISIX).
 */
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { beforeEach, describe, expect, it } from "vitest";
import { connectHttp2 } from "../support/http2-client.ts";
import { valuesOf } from "../support/http-reader.ts";
import {
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  FrameClient,
  GET,
  headerBlock,
} from "../support/http2-frames.ts";
import { use } from "../support/pair.ts";
import { leadsTo, readingsOf } from "../support/path-readings.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { ALICE, type ConfigParts, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";
import { acceptingUpgrades, waysInto } from "../support/ways.ts";

const PROXY = "127.0.0.2";
/** `paths` of a route, by the name of the route. */
const MODES = { strict: undefined, encoded: "encoded", sent: "asSent" } as const;
const NAMES = Object.keys(MODES) as (keyof typeof MODES)[];

const standing = use(
  () => startRawBackend(acceptingUpgrades),
  (target) => startSallyport({ target, config: configurationFor(target) }),
);
beforeEach(() => standing().backend.forget());
const ways = waysInto(() => standing().gate);
const WAYS = Object.entries(ways);

function configurationFor(target: string): ConfigParts {
  const protectedAt = { upstream: "app" };
  const publicAt = { upstream: "app", auth: "none" };
  return {
    server: { http2: true, tls: "off", trustedProxies: [PROXY] },
    upstreams: Object.fromEntries(NAMES.map((name) => [name, { targets: [target] }])),
    routes: [
      { ...protectedAt, name: "secret", hosts: ["secret.example"], path: "/" },
      { ...protectedAt, name: "tenants", hosts: ["*.tenant.example"], path: "/" },
      ...NAMES.flatMap((name) => {
        const paths = MODES[name];
        const rewrite = { stripPrefix: `/${name}`, addPrefix: "/open" };
        const common = { upstream: name, rewrite, ...(paths && { paths }) };
        return [
          { ...common, name, path: `/${name}/`, auth: "none" },
          { ...common, name: `${name}-admin`, path: `/${name}/admin` },
        ];
      }),
      { ...publicAt, name: "public", path: "/public/" },
      { ...protectedAt, name: "optional", path: "/optional/", auth: "optional" },
      { ...protectedAt, name: "orders", path: "/orders" },
    ],
  };
}

/** The targets that reached the backend. */
const arrived = (): string[] =>
  standing()
    .backend.seen()
    .map((line) => line.replace(/^\S+ /, ""));

describe.each(WAYS)("14, 15: the host, over %s", (_way, ask) => {
  it.each([
    ...["secret.example", "SECRET.example", "Secret.Example.", "secret.example:0"],
    ...["secret.example:99999", "secret.example:x", "secret.example:", "secret.example:443"],
    ...["secret.example:-1", "secret.example:8443:x", "user@secret.example", "secret.example/x"],
    ...["secret.example ", "secret.example\t", "secret.example?x", "secret.example#x"],
    ...["a.tenant.example", "A.TENANT.EXAMPLE.", "a.tenant.example:x", "a.b@c.tenant.example"],
    ...["[::1%25secret.example]", "[::1%lo]", "[secret.example]", "[::1]:x"],
  ])("%j is a protected one, or none", async (host) => {
    const status = await ask({ path: "/public/x", host });
    expect([400, 401]).toContain(status);
    expect(arrived()).toEqual([]);
  });

  it.each(["other.example", "other.example:80", "[::1]", "xsecret.example", "secret.example.org"])(
    "%s is another one",
    async (host) => {
      expect(await ask({ path: "/public/x", host })).toBe(200);
    },
  );
});

describe.each(WAYS)("29: a host that would end an element of Forwarded, over %s", (_way, ask) => {
  it.each(['a";for=6.6.6.6', "a;host=b", "a,b", 'a"', "a\\", "a=b", "(a)", "a b"])(
    "%j is refused",
    async (host) => {
      expect(await ask({ path: "/public/x", host })).toBe(400);
      expect(arrived()).toEqual([]);
    },
  );
});

describe("28: a trusted proxy that names something else than an address", () => {
  /** What the backend is told of a client behind the proxy. */
  async function realIp(list: string): Promise<readonly [status: number, ips: readonly string[]]> {
    const { gate, backend } = standing();
    backend.forget();
    const socket = connect({ port: gate.port, host: "127.0.0.1", localAddress: PROXY });
    const lines = ["GET /public/x HTTP/1.1", "Host: localhost", `X-Forwarded-For: ${list}`];
    socket.write(request([...lines, "Connection: close"]), "latin1");
    const answer = await text(socket);
    const headers = backend.requests()[0]?.headers ?? [];
    return [Number(answer.slice(9, 12)), valuesOf(headers, "x-real-ip")];
  }

  it.each([
    ...[
      "unknown",
      "_x",
      "_gazonk",
      "-",
      "evil",
      "203.0.113.7, unknown",
      "203.0.113.7, _x",
      "203.0.113.7,",
    ],
    ...[
      '"203.0.113.7, 198.51.100.1"',
      '"203.0.113.7"',
      "203.0.113.7 198.51.100.1",
      "203.0.113.999",
    ],
    ...[
      "0203.0.113.7",
      "0xcb.0.113.7",
      "203.0.113",
      "3405803783",
      "203.0.113.7:x",
      "[203.0.113.7]",
    ],
    ...["[2001:db8::1", "2001:db8::1]", "::ffff:203.0.113.999", "203.0.113.7;x", "for=203.0.113.7"],
    ...["\xff", "x".repeat(10_000), "203.0.113.7/32", "2001:db8::g", "2001:db8::1%a b"],
  ])("counts the proxy as the client: %.30j", async (list) => {
    expect(await realIp(list)).toEqual([200, [PROXY]]);
  });

  it("takes an address with a zone for the address, and no list that is longer than a head", async () => {
    expect(await realIp("fe80::1%eth0")).toEqual([200, ["fe80::1"]]);
    expect(await realIp(`fe80::1%${"x".repeat(9_000)}`)).toEqual([200, ["fe80::1"]]);
    expect(await realIp("203.0.113.7, ".repeat(5_500))).toEqual([431, []]);
  });
});

/** Everything after the prefix of a public route. */
const TAILS = [
  ...["a%2Fb", "a%2fb", "a%5Cb", "a%5cb", "%2Fadmin", "%2fadmin", "%2f..%2fadmin", "..%2Fadmin"],
  ...["\\..\\admin", "x\\..\\..\\admin", "%5c..%5cadmin", "%5C..%5Cadmin", "x/..%5cadmin"],
  ...["%2e%2e/admin", ".%2e%2fadmin", "x%2f..%2fadmin", "x/%2E%2E%2Fadmin", "%61dmin", "admin"],
  ...["%252fadmin", "..;/admin", ";/../admin", "//admin", "%2f%2fadmin", "admin%00", "admin%20"],
  ...["adm%69n/x", "admin%2fx", "admin%2Fx", "%41dmin", "x%23/../admin", "x%3f/../../admin"],
];

describe.each(NAMES)("16 to 18: paths that are %s", (mode) => {
  const prefixes = [mode, `%${mode.charCodeAt(0).toString(16)}${mode.slice(1)}`];
  const targets = prefixes.flatMap((prefix) => TAILS.map((tail) => `/${prefix}/${tail}`));

  it("lead nowhere protected, and mean the same on every road, in every spelling", async () => {
    const decisions = new Map<string, Set<number>>();
    const without = (target: string): string =>
      target
        .replace(prefixes[1] ?? "", mode)
        .replaceAll(/%[0-9a-f]{2}/gi, (all) => all.toUpperCase());
    for (const target of targets) {
      const same = decisions.get(without(target)) ?? new Set();
      decisions.set(without(target), same);
      for (const [, ask] of WAYS) same.add(await ask({ path: target }));
    }
    const several = [...decisions].filter(([, statuses]) => statuses.size > 1);
    expect(several.map(([target, statuses]) => [target, ...statuses])).toEqual([]);
    const found = [...decisions].flatMap(([, statuses]) => [...statuses]);
    expect(new Set(found)).toEqual(new Set([200, 400, 401]));
    const elsewhere = (target: string): boolean =>
      leadsTo("/open/admin", target) ||
      !readingsOf(target).every((each) => each.startsWith("/open/"));
    expect(arrived().filter(elsewhere)).toEqual([]);
  });

  it("lead to the place that the route means", async () => {
    for (const prefix of prefixes) {
      for (const [, ask] of WAYS) expect(await ask({ path: `/${prefix}/a/b?c` })).toBe(200);
    }
    expect(new Set(arrived())).toEqual(new Set(["/open/a/b?c"]));
  });
});

describe("20: the absolute form", () => {
  const statusOf = async (line: string, ...more: string[]): Promise<number> => {
    const lines = [`${line} HTTP/1.1`, "Host: localhost", ...more, "Connection: close"];
    return (await exchange(standing().gate, request(lines))).last.status;
  };

  it.each(["/public/x", "/admin", "/strict/admin", "/api/authenticate", "/api/version", "/"])(
    "of %s is decided like the path",
    async (path) => {
      for (const method of ["GET", "POST", "DELETE"]) {
        const length = method === "POST" ? ["Content-Length: 0"] : [];
        const plain = await statusOf(`${method} ${path}`, ...length);
        for (const origin of ["http://localhost", "https://localhost", "HTTP://LOCALHOST"]) {
          expect(await statusOf(`${method} ${origin}${path}`, ...length)).toBe(plain);
        }
        for (const origin of [
          "http://secret.example",
          "http://a@localhost",
          "http:/",
          "//localhost",
        ]) {
          expect(await statusOf(`${method} ${origin}${path}`, ...length)).toBe(400);
        }
      }
      expect(arrived().filter((target) => target !== path)).toEqual([]);
    },
  );

  it("is no :path", async () => {
    for (const [way, ask] of WAYS.filter(([name]) => name.endsWith("HTTP/2"))) {
      expect([way, await ask({ path: "http://localhost/public/x" })]).toEqual([way, 400]);
    }
    expect(arrived()).toEqual([]);
  });
});

describe.each(WAYS)("21: a target without a slash, over %s", (_way, ask) => {
  it.each([
    "public/x",
    "*",
    "?x",
    "\\public\\x",
    "%2fpublic/x",
    ".",
    "//public/x",
    "///",
    "#/public/x",
  ])("%j is refused for every method", async (path) => {
    for (const method of ["GET", "POST", "DELETE", "OPTIONS", "HEAD"]) {
      expect(await ask({ path, method })).toBe(400);
    }
    expect(arrived()).toEqual([]);
  });
});

describe("22: a declared length", () => {
  const BODY = request(["GET /admin HTTP/1.1", "Host: localhost"]);
  const lengths = [undefined, 0, 1, BODY.length - 1, BODY.length, BODY.length + 1, 65_536];
  const ENDS = {
    "by the head": () => [],
    "by the only DATA": (body: string) => [frame(FRAME.data, END_STREAM, 1, body)],
    "by an empty DATA": (body: string) => [
      frame(FRAME.data, 0, 1, body),
      frame(FRAME.data, END_STREAM, 1),
    ],
    "by trailers": (body: string) => [
      frame(FRAME.data, 0, 1, body),
      frame(FRAME.headers, END_HEADERS | END_STREAM, 1, headerBlock([["x-end", "1"]])),
    ],
  };
  const cases = Object.keys(ENDS).flatMap((end) => lengths.map((declared) => ({ end, declared })));

  it.each(cases)(
    "of $declared, ended $end, is the length or the request is cut off",
    async (each) => {
      const { gate, backend } = standing();
      const end = ENDS[each.end as keyof typeof ENDS];
      const body = each.end === "by the head" ? "" : BODY;
      const length =
        each.declared === undefined ? [] : [["content-length", `${each.declared}`] as const];
      const post = [[":method", "POST"], ...GET.slice(1), ...length] as const;
      await using client = await FrameClient.connect(gate);
      const flags = END_HEADERS | (body === "" ? END_STREAM : 0);
      client.send(Buffer.concat([frame(FRAME.headers, flags, 1, headerBlock(post)), ...end(body)]));
      const answered = (): boolean => client.of(FRAME.headers).length > 0;
      const over = (): boolean =>
        client.closed || client.of(FRAME.reset).length + client.of(FRAME.goAway).length > 0;
      await until(() => answered() || over());
      // Whatever is left on a connection to the backend would be read before this one.
      expect(await ways["HTTP/1.1"]?.({ path: "/public/next" })).toBe(200);
      const sound = each.declared === undefined || each.declared === body.length;
      expect(answered() && !over()).toBe(sound);
      expect(backend.seen()).toEqual([...(sound ? ["POST /public/x"] : []), "GET /public/next"]);
      if (sound) expect(backend.requests()[0]?.body.toString()).toBe(body);
    },
  );
});

describe("23: after a refused CONNECT", () => {
  const smuggled = request(["GET /public/smuggled HTTP/1.1", "Host: localhost"]);

  it.each([
    ["with a length", [`Content-Length: ${smuggled.length}`], smuggled],
    [
      "with chunks",
      ["Transfer-Encoding: chunked"],
      `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
    ],
    ["without a length", [], smuggled],
  ])("no byte of the connection is a request: a body %s", async (_what, fields, body) => {
    const { gate, backend } = standing();
    const head = ["CONNECT localhost:1 HTTP/1.1", "Host: localhost:1", ...fields];
    const { responses, ended } = await exchange(gate, request(head, body) + smuggled, {
      responses: Infinity,
    });
    expect([responses.length, [400, 405].includes(responses[0]?.status ?? 0)]).toEqual([1, true]);
    expect([ended, backend.seen()]).toEqual(["closed", []]);
  });

  it("on a stream, the others go on, and its DATA is no request", async () => {
    const { gate, backend } = standing();
    await using client = await FrameClient.connect(gate);
    const connect = [
      [":method", "CONNECT"],
      [":authority", "localhost:1"],
    ] as const;
    client.send(frame(FRAME.headers, END_HEADERS, 1, headerBlock(connect)));
    client.send(frame(FRAME.data, END_STREAM, 1, smuggled));
    client.get(3);
    await until(() => client.of(FRAME.data).some(({ stream }) => stream === 3));
    expect(backend.seen()).toEqual(["GET /public/x"]);
  });
});

describe("24: interim responses", () => {
  const H = "Host: localhost";
  const EXPECT = "Expect: 100-continue";
  const EXPECTING = {
    GET: [request(["GET /public/third HTTP/1.1", H, EXPECT]), "/public/third"],
    HEAD: [request(["HEAD /public/third HTTP/1.1", H, EXPECT]), ""],
    POST: [
      request(["POST /public/third HTTP/1.1", H, EXPECT, "Content-Length: 2"], "ok"),
      "/public/third",
    ],
  } as const;
  const INTERIM = [
    "",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
    "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
  ];

  it.each(Object.entries(EXPECTING))(
    "shift no answer of a pipeline after %s",
    async (_method, [third, body]) => {
      const { gate, backend } = standing();
      const pipeline = [
        request(["GET /public/1 HTTP/1.1", H]),
        request(["HEAD /public/two HTTP/1.1", H]),
        third,
        request(["HEAD /public/fourth HTTP/1.1", H]),
        request(["GET /public/5 HTTP/1.1", H, "Connection: close"]),
      ];
      const whole = ["/public/1", "", body, "", "/public/5"];
      for (const interim of INTERIM) {
        backend.answerWith((seen, connection) => {
          const answer = acceptingUpgrades(seen, connection);
          return typeof answer === "string" ? answer : { write: interim + String(answer.write) };
        });
        const { raw } = await exchange(gate, pipeline.join(""), { responses: Infinity });
        const finals = raw.replaceAll(/HTTP\/1\.1 1\d\d [^]*?\r\n\r\n/g, "");
        const answers = finals.split(/HTTP\/1\.1 200 OK\r\n/).slice(1);
        const bodies = answers.map((answer) => answer.slice(answer.indexOf("\r\n\r\n") + 4));
        // If the body was not asked for, the connection ends after the answer to the third.
        expect(bodies.length).toBeGreaterThanOrEqual(3);
        expect(bodies).toEqual(whole.slice(0, bodies.length));
      }
      backend.answerWith(acceptingUpgrades);
    },
  );
});

describe.each(WAYS)("13, 31, 46: over %s", (way, ask) => {
  const FORGED = {
    "X-Auth-Subject": "root",
    X_Auth_Groups: "root",
    "X-Forwarded-User": "root",
    "X-Remote-User": "root",
    "X-Auth-Request-User": "root",
    "X-Auth-Client-Subject": "root",
  };

  it.each(["/public/x", "/optional/x"])("no identity of a client arrives on %s", async (path) => {
    expect(await ask({ path, fields: FORGED })).toBe(200);
    const [seen] = standing().backend.requests();
    expect(seen?.headers.filter(([, value]) => value === "root")).toEqual([]);
    expect(valuesOf(seen?.headers ?? [], "x-auth-subject")).toEqual([]);
  });

  it("a request without a valid token gets no further", async () => {
    const { gate } = standing();
    const bearer = (text: string) => ({ Authorization: `Bearer ${text}` });
    const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${gate.token.split(".")[1]}.`;
    for (const fields of [{}, bearer("x"), bearer(`${gate.token}x`), bearer(none)]) {
      for (const path of ["/orders", "/strict/admin", "/optional/x"]) {
        if (path === "/optional/x" && !("Authorization" in fields)) continue;
        expect([path, await ask({ path, fields })]).toEqual([path, 401]);
      }
    }
    expect(arrived()).toEqual([]);
    expect(await ask({ path: "/orders", fields: bearer(gate.token) })).toBe(200);
    expect([way, arrived()]).toEqual([way, ["/orders"]]);
  });
});

describe("37: a login that skips its stage", () => {
  const good = JSON.stringify(ALICE);
  it.each([
    ["an empty body", "", "application/json", 400],
    ["an empty object", "{}", "application/json", 400],
    ["an empty form", "", "application/x-www-form-urlencoded", 415],
    ["a form", "username=alice&password=x", "application/x-www-form-urlencoded", 415],
    ["no type", good, undefined, 415],
    ["an empty password", '{"username":"alice","password":""}', "application/json", 400],
  ])("%s is no login", async (_what, body, type, status) => {
    const { gate } = standing();
    const typed = type === undefined ? {} : { "content-type": type };
    const lines = Object.entries(typed).map(([name, value]) => `${name}: ${value}`);
    const length = `Content-Length: ${body.length}`;
    const head = ["POST /api/authenticate HTTP/1.1", "Host: localhost", length, ...lines];
    expect((await exchange(gate, request(head, body))).last.status).toBe(status);
    await using client = await connectHttp2(gate);
    const post = { ":method": "POST", ":path": "/api/authenticate", ...typed };
    expect((await client.ask(post, body)).status).toBe(status);
  });
});
