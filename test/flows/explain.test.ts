/** `/-/explain` and `sallyport explain` predict what the proxy does with a request. */
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { calculateJwkThumbprint } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command } from "../cli/command.ts";
import type { Explanation } from "../../src/core/explanation.ts";
import { ask, fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { logLine } from "../support/log-line.ts";
import { exchange, request } from "../support/raw-client.ts";
import { type LogLine, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const pair = signingPair("");
const own = { privateKey: pair.privateKey, kid: await calculateJwkThumbprint(pair.jwk) };
const stranger = { privateKey: signingPair("").privateKey, kid: own.kid };
const partner = signingPair("partner");

const CONFIG = {
  server: { limits: { headers: 12, bodyBytes: "1KiB" }, trustedProxies: ["127.0.0.0/8"] },
  routes: [
    { name: "home", path: "/", auth: "none", upstream: "app" },
    { name: "admin", path: "/admin/", require: { groups: { any: ["admin"] } }, upstream: "app" },
    { name: "reads", path: "/reads", methods: ["GET", "HEAD"], upstream: "app" },
    { name: "one", exact: "/one", upstream: "app", limits: { bodyBytes: "4B" } },
    { name: "watched", path: "/watched", mode: "monitor", upstream: "app" },
    { name: "api", hosts: ["api.example.com"], path: "/", upstream: "app" },
    { name: "tenants", hosts: ["*.example.com"], path: "/admin", auth: "none", upstream: "app" },
    {
      name: "team",
      path: "/team",
      require: { groups: { all: ["sales", "admin"] } },
      upstream: "app",
      forwardAuthorization: "keep",
      rewrite: { stripPrefix: "/team", addPrefix: "/v2" },
    },
    // The rewritten path is not public when requested directly, either.
    { name: "v2", path: "/v2", require: { groups: { all: ["sales", "admin"] } }, upstream: "app" },
  ],
};

const stack = new AsyncDisposableStack();
let backend: EchoBackend;
let gate: Sallyport;
let tokens: Readonly<Record<string, string>>;

const now = (): number => Math.floor(Date.now() / 1000);
const claims = (more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  iss: "sallyport",
  aud: "sallyport",
  sub: "mallory",
  groups: ["sales"],
  jti: "1",
  iat: now() - 10,
  exp: now() + 600,
  ...more,
});

beforeAll(async () => {
  const keys = stack.use(await temporaryDirectory());
  const pem = pair.privateKey.export({ format: "pem", type: "pkcs8" });
  await chmod(await keys.write("one.pem", pem), 0o600);
  backend = stack.use(await startEchoBackend());
  const trusted = [
    { issuer: "partner", audience: "us", jwks: { file: "jwks.json" }, algorithms: ["ES256"] },
  ];
  gate = stack.use(
    await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: { ...CONFIG, tokens: { keys: keys.path, trusted, maxBytes: "2KiB" } },
      files: { "jwks.json": JSON.stringify({ keys: [partner.jwk] }) },
    }),
  );
  const good = await signToken(own, claims());
  tokens = {
    good,
    admin: await signToken(own, claims({ groups: ["sales", "admin"] })),
    partner: await signToken(partner, claims({ iss: "partner", aud: "us" })),
    expired: await signToken(own, claims({ exp: now() - 5 })),
    notYet: await signToken(own, claims({ nbf: now() + 300 })),
    noExpiry: await signToken(own, claims({ exp: undefined })),
    audience: await signToken(own, claims({ aud: "others" })),
    issuer: await signToken(own, claims({ iss: "others" })),
    badGroups: await signToken(own, claims({ groups: [7] })),
    unknownKey: await signToken({ ...own, kid: "unknown" }, claims()),
    forged: await signToken(stranger, claims()),
    unsigned: `${good.slice(0, good.lastIndexOf("."))}.`,
    none: `eyJhbGciOiJub25lIn0.${good.split(".")[1]}.AAAA`,
    long: `${good}${"A".repeat(2100)}`,
    garbage: "abc",
  };
});
afterAll(() => stack.disposeAsync());

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly authorization: string | undefined;
  readonly headers: readonly string[];
  readonly body: string;
}

const PATHS = ["/", "/admin", "/admin/", "/reads", "/one", "/watched", "/team", "/api/version"];
/** Mostly picks valid parts, since one ambiguous part hides everything else. */
function mostly<T>(usual: readonly T[], odd: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...usual) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  );
}

const HEADERS = ["X-Forwarded-For: 192.0.2.7", "X-Auth-Subject: root", "A: 1", "B: 2", "C: 3"];
const asked = fc.record({
  method: mostly(["GET", "GET", "HEAD", "POST", "DELETE"], ["TRACE", "PROPFIND"]),
  path: fc
    .tuple(
      mostly([...PATHS, "/%61dmin/"], ["//", "/api/authenticate"]),
      mostly(["", "", "/x"], ["/..", "/%2e%2e/admin/", "/a%00", "/%2f", ";v=1", "/Ä"]),
      mostly(["", "", "?q=1", "?a=%zz"], ["#f"]),
    )
    .map((parts) => parts.join("")),
  host: mostly(["localhost", "api.example.com", "a.example.com:8443"], ["a b", "x..y"]),
  authorization: fc.constantFrom("", "Basic eA==", "Bearer", "bearer  "),
  token: fc.option(fc.integer({ min: 0, max: 14 }), { freq: 3 }),
  headers: fc
    .tuple(
      fc.subarray(HEADERS),
      mostly([""], ["Host: second", "Expect: x", "Transfer-Encoding: gzip, chunked"]),
    )
    .map(([usual, odd]) => (odd === "" ? usual : [...usual, odd])),
  body: mostly(["", "", "hello"], ["x".repeat(1025)]),
});

function toAsked({ token, authorization, ...rest }: Generated): Asked {
  const all = Object.values(tokens);
  const chosen = token === null ? undefined : all[token % all.length];
  const sent = chosen === undefined ? authorization : `Bearer ${chosen}`;
  return { ...rest, authorization: sent === "" ? undefined : sent };
}

type Generated = typeof asked extends fc.Arbitrary<infer T> ? T : never;

let count = 0;

/** Sends the request. @returns its real outcome: the status and the log line. */
async function actually({ method, path, host, authorization, headers, body }: Asked) {
  count += 1;
  const requestId = `explained-${count}`;
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${host}`,
    ...headers,
    ...(authorization === undefined ? [] : [`Authorization: ${authorization}`]),
    ...(body === "" ? [] : [`Content-Length: ${body.length}`]),
    `X-Request-Id: ${requestId}`,
  ];
  const { last } = await exchange(gate, Buffer.from(request(lines, body)), {
    head: method === "HEAD",
  });
  // A request that the parser refuses gets a generated ID.
  const line = await logLine(gate, { request_id: last.header("x-request-id") ?? requestId });
  return { status: last.status, line };
}

function fieldsFor({ host, headers, body }: Asked): string[] {
  const length = body === "" ? [] : [`Content-Length: ${body.length}`];
  return [`Host: ${host}`, ...headers, ...length, "X-Request-Id: explained"];
}

async function byPage(asked: Asked): Promise<Explanation> {
  const query = new URLSearchParams({ method: asked.method, url: asked.path });
  for (const field of fieldsFor(asked)) query.append("header", field);
  const { authorization } = asked;
  const answer = await ask({ port: gate.adminPort }, `/-/explain?${query.toString()}`, {
    headers: authorization === undefined ? {} : { authorization },
  });
  expect(answer.status, answer.body).toBe(200);
  return JSON.parse(answer.body) as Explanation;
}

async function byCommand(asked: Asked): Promise<Explanation> {
  const { authorization } = asked;
  const fields = fieldsFor(asked);
  if (authorization !== undefined) fields.push(`Authorization: ${authorization}`);
  const { code, out, err } = await command([
    ...["explain", "--config", join(gate.directory, "config.yaml"), "--format", "json"],
    ...["--method", asked.method, "--url", asked.path],
    ...fields.flatMap((field) => ["--header", field]),
  ]);
  expect(err).toBe("");
  const explained = JSON.parse(out) as Explanation;
  expect(code).toBe(explained.verdict.outcome === "refused" ? 1 : 0);
  return explained;
}

/** The fields that must match the real outcome. */
function predicted({ verdict, request: read }: Explanation) {
  const { outcome, status, reason, wouldDeny, route } = verdict;
  // For a monitored request that is refused for another reason, the log has that reason.
  const watched = outcome === "refused" ? undefined : wouldDeny;
  return { outcome, status, reason, wouldDeny: watched, route, client: read?.client };
}

function actual(status: number, line: LogLine, explained: Explanation) {
  const refused = line["source"] === "self" && !(explained.verdict.outcome === "answered");
  const outcome =
    line["source"] === "upstream" ? "forwarded" : refused ? "refused" : explained.verdict.outcome;
  return {
    outcome,
    status: refused ? status : undefined,
    reason: refused ? line["reason"] : undefined,
    wouldDeny: line["auth"] === "would_deny" && !refused ? line["reason"] : undefined,
    route: line["route"],
    client: explained.request === undefined ? undefined : line["client"],
  };
}

describe("the verdict", () => {
  it("matches the real outcome of generated requests", { timeout: 60_000 }, async () => {
    const outcomes = new Set<string>();
    const check = async (question: Asked, index: number): Promise<void> => {
      const [{ status, line }, page] = await Promise.all([actually(question), byPage(question)]);
      const what = JSON.stringify({ ...question, body: question.body.length });
      expect(predicted(page), what).toEqual(actual(status, line, page));
      // The command reads the entire configuration each time.
      if (index % 20 === 0)
        expect(predicted(await byCommand(question)), what).toEqual(predicted(page));
      outcomes.add(page.verdict.reason ?? page.verdict.wouldDeny ?? page.verdict.outcome);
    };
    const questions = fc.sample(asked, { numRuns: 200, seed: 5 }).map(toAsked);
    for (let at = 0; at < questions.length; at += 25) {
      // In batches, since each waits for its log line.
      await Promise.all(questions.slice(at, at + 25).map(check));
    }
    // A generator with only a few distinct outcomes would prove little.
    expect(outcomes.size).toBeGreaterThan(16);
  });

  it("has a reason for each kind of refusal", async () => {
    const of = async (path: string, token?: string, more: Partial<Asked> = {}) => {
      const authorization = token === undefined ? undefined : `Bearer ${token}`;
      const question = { method: "GET", path, host: "localhost", headers: [], body: "" };
      const explained = await byPage({ ...question, authorization, ...more });
      return explained.verdict.reason ?? explained.verdict.outcome;
    };
    expect(await of("/reads")).toBe("missing");
    const reasons = await Promise.all(Object.values(tokens).map((token) => of("/reads", token)));
    expect(Object.fromEntries(Object.keys(tokens).map((name, i) => [name, reasons[i]]))).toEqual({
      good: "forwarded",
      admin: "forwarded",
      partner: "forwarded",
      expired: "expired",
      notYet: "not_yet_valid",
      noExpiry: "no_expiry",
      audience: "audience",
      issuer: "issuer",
      badGroups: "malformed",
      unknownKey: "unknown_key",
      forged: "signature",
      unsigned: "malformed",
      none: "algorithm",
      long: "too_large",
      garbage: "malformed",
    });
    expect(await of("/admin/x", tokens["good"])).toBe("forbidden");
    expect(await of("/reads/..")).toBe("ambiguous_path");
    expect(await of("/one", tokens["good"], { body: "hello" })).toBe("body_too_large");
    expect(await of("/api/version", undefined, { method: "POST" })).toBe("method_not_allowed");
  });
});

describe("the explanation", () => {
  const question: Asked = {
    method: "GET",
    path: "/team/a?secret=1",
    host: "localhost",
    authorization: undefined,
    headers: ["X-Auth-Subject: root", "Cookie2: x", "Connection: X-Mine", "X-Mine: 1"],
    body: "",
  };

  it("lists the fields that the backend actually gets", async () => {
    const authorization = `Bearer ${tokens["admin"]}`;
    const explained = await byPage({ ...question, authorization });
    expect(explained.verdict).toMatchObject({ outcome: "forwarded", route: "team" });
    expect(explained.backend).toMatchObject({ upstream: "app", targets: [backend.url] });
    const before = backend.requests.length;
    const { status } = await actually({ ...question, authorization });
    expect(status).toBe(200);
    const got = backend.requests[before];
    expect(got?.url).toBe(`${explained.backend?.path}?secret=1`);
    const arrived = got?.rawHeaders.filter((_, i) => i % 2 === 0) ?? [];
    const { added = [], kept = [], removed = [] } = explained.backend?.headers ?? {};
    const names = [...added.map(([name]) => name), ...kept, "connection"];
    const sorted = (list: readonly string[]): string[] =>
      list.map((name) => name.toLowerCase()).toSorted();
    expect(sorted(arrived)).toEqual(sorted(names));
    expect(removed).toEqual(["X-Auth-Subject", "Connection", "X-Mine"]);
    expect(Object.fromEntries(added)).toMatchObject({
      "X-Auth-Subject": "mallory",
      "X-Auth-Groups": "sales,admin",
    });
  });

  it("never contains the token, its signature, a cookie or the query", async () => {
    for (const token of Object.values(tokens).slice(0, 6)) {
      const asked = { ...question, authorization: `Bearer ${token}` };
      const [page, cli] = [await byPage(asked), await byCommand(asked)];
      const text = await command([
        ...["explain", "--config", join(gate.directory, "config.yaml"), "--url", asked.path],
        ...["--token", token, "--header", "Cookie: session=hunter2"],
      ]);
      for (const shown of [JSON.stringify(page), JSON.stringify(cli), text.out + text.err]) {
        const signature = token.split(".")[2] ?? "";
        if (token.length > 10) expect(shown).not.toContain(token);
        if (signature.length > 10) expect(shown).not.toContain(signature);
        expect(shown).not.toMatch(/hunter2|secret=1/);
      }
    }
  });

  it("says why the other routes did not match", async () => {
    const { routes } = await byPage({ ...question, path: "/reads", method: "POST" });
    expect(routes.map(({ name, result, misfits }) => [name, result, ...misfits])).toEqual([
      ["api", "does not fit", "host"],
      ["tenants", "does not fit", "host", "path"],
      ["watched", "does not fit", "path"],
      ["admin", "does not fit", "path"],
      ["reads", "does not fit", "method"],
      ["team", "does not fit", "path"],
      ["one", "does not fit", "path"],
      ["v2", "does not fit", "path"],
      ["home", "taken"],
    ]);
  });

  it.each([
    ["ambiguous_path", "/a/../b", "a dot segment, . or .."],
    ["ambiguous_path", "/a/%2e%2E", "a dot segment, . or .."],
    ["ambiguous_path", "/a%2Fb", "an encoded slash or backslash"],
    ["ambiguous_path", "//a", "an empty segment, //"],
    ["ambiguous_path", "/a;b", "a semicolon"],
    ["ambiguous_path", "/a\\b", "a backslash"],
    ["ambiguous_path", "/a%3Fb", "an encoded ? or #"],
    ["ambiguous_path", "/a%00", "an encoded control character"],
    ["ambiguous_path", "/a%252e", "a doubly encoded character"],
    ["ambiguous_path", "/a%25%32%65", "a doubly encoded character"],
    ["ambiguous_path", "/a%zz", "a % without two hex digits"],
    ["ambiguous_path", "/a%ff", "bytes that are not UTF-8"],
    ["ambiguous_path", "/a|b", "a character that must be encoded"],
    ["ambiguous_target", "/a#b", "a fragment, #"],
  ])("gives the detail of %s in %s", async (reason, path, detail) => {
    const { verdict } = await byPage({ ...question, path });
    expect(verdict).toMatchObject({ outcome: "refused", reason, detail });
  });

  it.each([
    ["ambiguous_host", ["Host: second"], "2 Host fields"],
    [
      "ambiguous_framing",
      ["Transfer-Encoding: gzip, chunked"],
      "a transfer coding other than chunked",
    ],
    [
      "ambiguous_framing",
      ["Transfer-Encoding: gzip", "Transfer-Encoding: gzip"],
      "2 Transfer-Encoding fields",
    ],
    [
      "invalid_transfer_encoding",
      ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"],
      "Invalid `Transfer-Encoding` header value",
    ],
    ["header_too_large", Array(13).fill("A: 1"), "15 fields, and server.limits.headers is 12"],
  ])("says what is wrong with the header section: %s", async (reason, headers, detail) => {
    const { verdict } = await byPage({ ...question, headers });
    expect(verdict).toMatchObject({ outcome: "refused", reason, detail });
  });

  it("says why a Host is invalid", async () => {
    const { verdict } = await byPage({ ...question, host: "a b" });
    expect(verdict.detail).toBe("a Host that is not a host name, with or without a port");
  });

  it("accepts a token that is too long for the main listener", async () => {
    const authorization = `Bearer ${"a".repeat(20_000)}`;
    const { verdict } = await byPage({ ...question, authorization });
    expect(verdict.reason).toBe("header_too_large");
    expect(verdict.detail).toMatch(
      /^20\d{3} bytes in the head, and server.limits.headerBytes is 16384$/,
    );
  });

  it("does not change any counter", async () => {
    const decisions = async (): Promise<string[]> =>
      (await ask({ port: gate.adminPort }, "/metrics")).body
        .split("\n")
        .filter((line) => /^sallyport_(?:auth_decisions|http_requests|token_cache)/.test(line));
    const before = await decisions();
    await byPage({ ...question, authorization: `Bearer ${tokens["good"]}` });
    expect(await decisions()).toEqual(before);
  });
});

// Found by the generator above: the connection was closed without the response that the log reported.
it("HEAD with a final transfer coding other than chunked gets its 400", async () => {
  const lines = ["HEAD / HTTP/1.1", "Host: localhost", "Transfer-Encoding: gzip"];
  const { last } = await exchange(gate, request(lines), { head: true });
  expect(last.status).toBe(400);
});

describe("the page", () => {
  it.each([
    ["no URL", "method=GET"],
    ["a URL with another scheme", "url=ftp://x/"],
    ["a line break in a header", `url=/&header=${encodeURIComponent("A: 1\r\nB: 2")}`],
    ["an unknown method", "url=/&method=FETCH"],
    ["CONNECT", "url=/&method=CONNECT"],
    ["an invalid client address", "url=/&client=me"],
    ["a token in the query", "url=/&header=Authorization:%20Bearer%20x"],
    ["a cookie in the query", "url=/&header=cookie:%20a"],
  ])("refuses %s", async (_what, query) => {
    const answer = await ask({ port: gate.adminPort }, `/-/explain?${query}`);
    expect(answer.status).toBe(400);
    expect(fieldsOf(answer)["success"]).toBe(false);
  });

  it("answers only peers in admin.allow", async () => {
    const admin = { listen: "127.0.0.1:0", allow: ["192.0.2.1"] };
    await using other = await startSallyport({
      withoutToken: true,
      target: backend.url,
      config: { admin },
    });
    const answer = await ask({ port: other.adminPort }, "/-/explain?url=/");
    expect(answer.status).toBe(403);
    expect(answer.body).not.toContain("routes");
  });

  it("is not on the main listener", async () => {
    const { status } = await ask(gate, "/-/explain?url=/");
    expect(status).toBe(200);
    expect(backend.requests.at(-1)?.url).toBe("/-/explain?url=/");
  });
});
