/** Programs that have no token bring an API key. */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, type Question } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { echoedBy } from "../../support/echoed.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";
import {
  openWebSocket,
  startWebSocketBackend,
  type WebSocketBackend,
} from "../../support/websocket.ts";
import { newApiKey } from "../../../src/tokens/api-keys/api-key-file.ts";

const ci = newApiKey("ci");
const old = newApiKey("old");
const off = newApiKey("off");

const FILE = {
  ci: { hash: ci.hash, groups: ["deploy"], scopes: ["orders:read"] },
  old: { hash: old.hash, expires: "2020-01-01T00:00:00Z" },
  off: { hash: off.hash, disabled: true },
};

const keyed = { tokenFrom: [{ header: "Authorization" }, { apiKey: "X-API-Key" }] };
const bearer = { tokenFrom: [{ header: "Authorization" }, { apiKey: "Authorization" }] };

const ROUTES = [
  { name: "bearer", path: "/bearer/", ...bearer, upstream: "app" },
  { name: "scoped", path: "/scoped/", ...keyed, require: { scopes: { all: ["orders:read"] } } },
  { name: "write", path: "/write/", ...keyed, require: { scopes: { all: ["orders:write"] } } },
  { name: "deploy", path: "/deploy/", ...keyed, require: { groups: { any: ["deploy"] } } },
  { name: "staff", path: "/staff/", ...keyed, require: { groups: { any: ["staff"] } } },
  { name: "tokens", path: "/tokens/" },
  { name: "open", path: "/open/", auth: "none" },
  { name: "spelled", path: "/spelled/", tokenFrom: [{ apiKey: "x-api-key" }] },
  { name: "optional", path: "/optional/", auth: "optional", tokenFrom: [{ apiKey: "X-API-Key" }] },
  {
    name: "limited",
    path: "/limited/",
    ...keyed,
    rateLimit: { requests: 2, within: "1h", by: "subject" },
  },
  { name: "sockets", path: "/socket", ...keyed, upstream: "sockets" },
  { name: "keyed", path: "/", ...keyed },
].map((route) => ({ upstream: "app", ...route }));

const start = (backend: EchoBackend, keys: object, workers = 1): Promise<Sallyport> =>
  startSallyport({
    target: backend.url,
    config: {
      upstreams: { sockets: { targets: [sockets.url] } },
      apiKeys: [{ kind: "file", path: "api-keys.yaml" }],
      routes: ROUTES,
      server: { workers },
      log: { fields: { api_key: "claim:api_key" } },
    },
    files: { "api-keys.yaml": JSON.stringify({ keys }) },
  });

let backend: EchoBackend;
let sockets: WebSocketBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  sockets = await startWebSocketBackend();
  gate = await start(backend, FILE);
});
afterAll(async () => {
  await gate.close();
  await sockets.close();
  await backend.close();
});

const get = (path: string, key?: string, question: Question = {}, at = gate) =>
  ask(at, path, {
    ...question,
    headers: { ...(key === undefined ? {} : { "x-api-key": key }), ...question.headers },
  });

describe("an API key", () => {
  it("is a caller, whom the backend knows without the key", async () => {
    const answer = await get("/x", ci.key);
    expect(answer.status).toBe(200);
    const { header } = echoedBy(answer);
    const identity = ["x-auth-subject", "x-auth-groups", "x-auth-issuer", "x-api-key"].map(header);
    expect(identity).toEqual(["ci", "deploy", "api-keys", undefined]);
    expect(answer.body).not.toContain(ci.key.slice(-20));
    await expect
      .poll(gate.log)
      .toContainEqual(
        expect.objectContaining({ msg: "request", path: "/x", subject: "ci", api_key: "ci" }),
      );
  });

  it("meets what routes require of groups and scopes", async () => {
    const statuses = await Promise.all(
      ["/scoped/x", "/deploy/x", "/write/x", "/staff/x"].map(
        async (path) => (await get(path, ci.key)).status,
      ),
    );
    expect(statuses).toEqual([200, 200, 403, 403]);
  });

  it("may be a bearer token where the route says so, beside tokens", async () => {
    expect((await ask(gate, "/bearer/x", { token: ci.key })).status).toBe(200);
    expect((await ask(gate, "/bearer/x", { token: gate.token })).status).toBe(200);
    expect((await ask(gate, "/x", { token: ci.key })).status).toBe(401);
    expect((await get("/bearer/x", ci.key)).status).toBe(401);
  });

  it("counts nowhere else", async () => {
    expect((await get("/tokens/x", ci.key)).status).toBe(401);
    expect((await ask(gate, "/tokens/x", { token: ci.key })).status).toBe(401);
    expect((await get(`/x?x-api-key=${ci.key}`)).status).toBe(401);
  });

  it.each<[string, string]>([
    ["of another secret", `${ci.key.slice(0, -1)}${ci.key.endsWith("A") ? "B" : "A"}`],
    ["of another name", ci.key.replace(/^sp_\w{12}/, "sp_000000000000")],
    ["that is too short", ci.key.slice(0, -1)],
    ["that is too long", `${ci.key}A`],
    ["in upper case", ci.key.toUpperCase()],
    ["that is its hash", ci.hash],
    ["that has expired", old.key],
    ["that is disabled", off.key],
    ["that is a token", "token"],
    ["that is empty", ""],
  ])("%s is refused", async (_what, key) => {
    const answer = await get("/x", key === "token" ? gate.token : key);
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toMatch(/^Bearer /);
    expect(answer.body).not.toContain("sp_");
  });

  it("beside a token, or twice, says not who is calling", async () => {
    expect((await get("/x", ci.key, { token: gate.token })).status).toBe(401);
    const twice = { headers: { "x-api-key": [ci.key, ci.key] } } as unknown as Question;
    expect((await ask(gate, "/x", twice)).status).toBe(401);
  });

  it("has a rate limit of its own", async () => {
    const asked = async (question: Question) => (await ask(gate, "/limited/x", question)).status;
    const key = { headers: { "x-api-key": ci.key } };
    expect([await asked(key), await asked(key), await asked(key)]).toEqual([200, 200, 429]);
    expect(await asked({ token: gate.token })).toBe(200);
  });

  it("reaches no backend of any other route", async () => {
    const answer = await get("/open/x", ci.key);
    expect(answer.status).toBe(200);
    expect(answer.body).not.toContain(ci.key.slice(-20));
  });

  it("is one, however routes spell its header, for our own endpoints, too", async () => {
    expect((await get("/spelled/x", ci.key)).status).toBe(200);
    expect((await get("/api/v1/version", ci.key)).status).toBe(200);
  });

  it("tells caches that the answer depends on it", async () => {
    expect((await get("/optional/x")).headers["vary"]).toMatch(/x-api-key/i);
  });

  it("never passes to a backend as the Authorization of an application", async () => {
    await using own = await startSallyport({
      target: backend.url,
      config: {
        apiKeys: [{ kind: "file", path: "api-keys.yaml" }],
        browser: {},
        routes: [
          {
            name: "all",
            path: "/",
            upstream: "app",
            tokenFrom: [{ cookie: "__Host-sallyport" }, { apiKey: "Authorization" }],
          },
        ],
      },
      files: { "api-keys.yaml": JSON.stringify({ keys: FILE }) },
    });
    const cookie = `__Host-sallyport=${own.token}`;
    const asked = (authorization: string) =>
      ask(own, "/x", { headers: { cookie, authorization, "sec-fetch-site": "same-origin" } });
    expect(echoedBy(await asked("Basic YTpi")).header("authorization")).toBe("Basic YTpi");
    for (const raw of [ci.key, `ApiKey ${ci.key}`]) {
      expect((await asked(raw)).body).not.toContain(ci.key.slice(-20));
    }
  });

  it("says to clients the same, whether its name exists or not", async () => {
    const wrong = await get("/x", `${ci.key.slice(0, -1)}${ci.key.endsWith("A") ? "B" : "A"}`);
    const unknown = await get("/x", ci.key.replace(/^sp_\w{12}/, "sp_000000000000"));
    const said = [wrong, unknown].map(({ headers }) => headers["www-authenticate"]);
    expect(said[0]).toBe(said[1]);
  });

  it.each([
    ["", {}],
    [", even if it says that it is yet to be made", { created: "2100-01-01T00:00:00Z" }],
  ])("ends by the revocation of its subject%s", async (_, more) => {
    await using own = await start(backend, { ...FILE, ci: { ...FILE.ci, ...more } });
    expect((await get("/x", ci.key, {}, own)).status).toBe(200);
    const path = "/-/revoke?subject=ci&issuer=api-keys";
    expect((await ask({ port: own.adminPort }, path, { method: "POST" })).status).toBe(200);
    expect((await get("/x", ci.key, {}, own)).status).toBe(401);
  });
});

it("is explained by a running proxy in its own place, and never in a query", async () => {
  const url = "/-/explain?url=/deploy/x";
  const explained = await ask({ port: gate.adminPort }, url, { headers: { "x-api-key": ci.key } });
  expect(JSON.parse(explained.body)).toMatchObject({
    verdict: { outcome: "forwarded", route: "deploy" },
    token: { accepted: true, subject: "ci", place: "the API key in X-API-Key" },
  });
  expect(explained.body).not.toContain(ci.key.slice(-20));
  const told = await ask({ port: gate.adminPort }, `${url}&header=x-api-key:+${ci.key}`);
  expect([told.status, told.body]).toEqual([400, expect.stringContaining("no place in a query")]);
});

it("is older or younger than a revocation of its subject, if it says when it was made", async () => {
  const created = (year: number) => `${year}-05-01T10:00:00Z`;
  const made = newApiKey("made");
  const entry = { hash: made.hash, subject: "made" };
  await using own = await startSallyport({
    target: backend.url,
    config: {
      apiKeys: [{ kind: "file", path: "api-keys.yaml" }],
      routes: [{ name: "keyed", path: "/", upstream: "app", ...keyed }],
      tokens: { revocation: { file: "revoked.yaml" } },
    },
    files: {
      "api-keys.yaml": JSON.stringify({ keys: { made: { ...entry, created: created(2026) } } }),
      "revoked.yaml": `subjects: { made: ${created(2025)} }`,
    },
  });
  expect((await get("/x", made.key, {}, own)).status).toBe(200);
  const keys = { made: { ...entry, created: created(2024) } };
  await writeFile(join(own.directory, "api-keys.yaml"), JSON.stringify({ keys }));
  await until(async () => (await get("/x", made.key, {}, own)).status === 401);
});

it("ends what runs if its entry names another caller", async () => {
  await using own = await start(backend, FILE);
  const socket = await openWebSocket(own, "/socket", { "x-api-key": ci.key });
  const file = join(own.directory, "api-keys.yaml");
  const groups = { ...FILE.ci, groups: ["others"] };
  await writeFile(file, JSON.stringify({ keys: { ...FILE, ci: groups } }));
  await until(async () => (await get("/deploy/x", ci.key, {}, own)).status === 403);
  expect(await Promise.race([socket.closed, Promise.resolve("open")])).toBe("open");
  const keys = { ...FILE, ci: { ...FILE.ci, subject: "robot" } };
  await writeFile(file, JSON.stringify({ keys }));
  await socket.closed;
});

describe.each([1, 2])("with %i workers", (workers) => {
  it("a metric says when the next key expires that is in force", async () => {
    const ends = (year: number, key: object) => ({ ...key, expires: `${year}-01-01T00:00:00Z` });
    await using own = await start(backend, FILE, workers);
    const series = 'sallyport_api_keys_next_expiry_timestamp_seconds{store="file"}';
    expect((await scrape(own)).text).toContain(`${series} +Inf\n`);
    const { hash } = newApiKey("new");
    const keys = { ...FILE, off: ends(2097, FILE.off), ci: ends(2099, FILE.ci), new: { hash } };
    const more = { ...keys, new: ends(2098, { hash }) };
    await writeFile(join(own.directory, "api-keys.yaml"), JSON.stringify({ keys: more }));
    await until(async () => (await scrape(own)).value(series) === Date.UTC(2098) / 1000);
  });

  it("changes of the file are in force at once, also for what runs; a broken one changes nothing", async () => {
    await using own = await start(backend, FILE, workers);
    const file = join(own.directory, "api-keys.yaml");
    const status = async (key: string) => (await get("/x", key, {}, own)).status;
    const socket = await openWebSocket(own, "/socket", { "x-api-key": ci.key });
    expect(await status(ci.key)).toBe(200);
    const added = newApiKey("new");
    await writeFile(file, JSON.stringify({ keys: { ...FILE, new: { hash: added.hash } } }));
    await until(async () => (await status(added.key)) === 200);
    await writeFile(file, "keys: [");
    await until(() => JSON.stringify(own.log()).includes("configuration was not reloaded"));
    expect([await status(added.key), await status(ci.key)]).toEqual([200, 200]);
    const began = performance.now();
    await writeFile(
      file,
      JSON.stringify({ keys: { ...FILE, ci: { ...FILE.ci, disabled: true } } }),
    );
    await socket.closed;
    expect(performance.now() - began).toBeLessThan(2_000);
    expect([await status(added.key), await status(ci.key)]).toEqual([401, 401]);
    // An end that was set since ends what runs, too.
    await writeFile(file, JSON.stringify({ keys: FILE }));
    await until(async () => (await status(ci.key)) === 200);
    const second = await openWebSocket(own, "/socket", { "x-api-key": ci.key });
    const expires = "2020-01-01T00:00:00Z";
    await writeFile(file, JSON.stringify({ keys: { ...FILE, ci: { ...FILE.ci, expires } } }));
    await second.closed;
    expect(await readFile(file, "utf8")).not.toContain(ci.key);
  });
});

it("is not found by anything but all of its bits", () => {
  expect(ci.key).toMatch(/^sp_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/);
  expect(ci.hash).toBe(`sha256:${createHash("sha256").update(ci.key).digest("hex")}`);
  expect(newApiKey("ci").key).not.toBe(ci.key);
});

describe("a configuration", () => {
  const problemsOf = async (config: object): Promise<string> => {
    const base = { apiKeys: [{ kind: "file", path: "api-keys.yaml" }], ...config };
    const files = { "api-keys.yaml": JSON.stringify({ keys: FILE }) };
    const started = startSallyport({ target: backend.url, config: base, files });
    return started.then(
      async (own) => {
        await own.close();
        return "";
      },
      (error: Error) => error.message,
    );
  };

  it("logs no header with keys, and names nobody else as they are named", async () => {
    const routes = [{ ...ROUTES[0], tokenFrom: [{ apiKey: "X-Service-Ident" }] }];
    const log = { fields: { who: "header:X_Service_Ident" } };
    expect(await problemsOf({ routes, log })).toContain("header that tokens are taken from");
    expect(await problemsOf({ tokens: { issuer: "api-keys" } })).toContain("issuer of API keys");
    const both = [{ ...ROUTES[0], tokenFrom: [{ header: "X-Key" }, { apiKey: "x_key" }] }];
    expect(await problemsOf({ routes: both })).toContain("must not name a place twice");
  });

  it.each(["Referer", "Cookie", "Host", "User-Agent", "If-Match", "traceparent"])(
    "takes no keys from %s, which means something else",
    async (apiKey) => {
      const routes = [{ ...ROUTES[0], tokenFrom: [{ apiKey }] }];
      expect(await problemsOf({ routes })).toContain("must be a header that can carry a key");
    },
  );

  it.each(["drop", "reject"])("takes no keys from a header that %s keeps away", async (policy) => {
    const routes = [{ ...ROUTES[0], tokenFrom: [{ apiKey: "x_api_key" }] }];
    const server = { underscoreHeaders: policy };
    expect(await problemsOf({ routes, server })).toContain("never arrives with");
  });

  it("has no two names whose ids are the same", async () => {
    // The first 48 bits of their SHA-256 are.
    const keys = { k2dd92f: { hash: ci.hash }, k72a92d: { hash: ci.hash } };
    const started = startSallyport({
      target: backend.url,
      config: { apiKeys: [{ kind: "file", path: "api-keys.yaml" }] },
      files: { "api-keys.yaml": JSON.stringify({ keys }) },
    });
    await expect(started).rejects.toThrow("k72a92d has the same id as k2dd92f");
  });

  it("may require keys, or forbid them, by their issuer", async () => {
    const require = { issuers: ["api-keys"] };
    const routes = [{ name: "keys", path: "/", upstream: "app", ...keyed, require }];
    await using own = await startSallyport({
      target: backend.url,
      config: { apiKeys: [{ kind: "file", path: "api-keys.yaml" }], routes },
      files: { "api-keys.yaml": JSON.stringify({ keys: FILE }) },
    });
    expect((await get("/x", ci.key, {}, own)).status).toBe(200);
    expect((await ask(own, "/x", { token: own.token })).status).toBe(403);
  });
});
