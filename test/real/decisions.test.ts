/** Real proxies ask whether a request may pass, and forward it themselves, as deploy/proxies configures them. */
import { createHash } from "node:crypto";
import { chmod } from "node:fs/promises";
import { Agent } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, ask, type Question } from "../support/ask.ts";
import { ASKERS, missingAsker, type RunningAsker, startAsker } from "../support/askers.ts";
import { startSilentServer } from "../support/dead-ends.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { leadsTo } from "../support/path-readings.ts";
import { PATH_TRICKS, pathTargets } from "../support/path-tricks.ts";
import { exchange, request } from "../support/raw-client.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { claims, OWN } from "../support/token-gate.ts";
import { until } from "../support/until.ts";
import { openWebSocket, startWebSocketBackend } from "../support/websocket.ts";

const ROUTES = [
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  { name: "reads", path: "/reads/", methods: ["GET"], auth: "none", upstream: "app" },
  { name: "admin", path: "/admin", require: { groups: { any: ["boss"] } }, upstream: "app" },
  { name: "everything", path: "/", upstream: "app" },
];
const CONFIG = {
  server: { tls: "off", http2: true, trustedProxies: ["127.0.0.1/32"] },
  decisions: { from: ["127.0.0.1/32"], grpc: true },
  browser: {},
  routes: ROUTES,
};

/** Clients are elsewhere than the proxies, whose word is believed. */
const CLIENT = "127.0.0.9";
const elsewhere = new Agent({ localAddress: CLIENT });

/** What a client says of itself. */
const FORGED = {
  "X-Auth-Subject": "root",
  "X-Auth-Groups": "boss",
  "X-Auth-Issuer": "root",
  "X-Auth-Client-Subject": "CN=root",
};
/** What a client says of the request. */
const RETOLD: readonly Readonly<Record<string, string>>[] = [
  { "X-Original-URI": "/public/x" },
  { "X-Original-Method": "GET", "X-Forwarded-Method": "GET" },
  { "X-Forwarded-Uri": "/public/x", "X-Forwarded-Host": "public.example.com" },
  { "X-Original-URL": "http://localhost/public/x" },
  { "X-Rewrite-URL": "/public/x", Forwarded: "for=192.0.2.1;host=public.example.com" },
  { x_original_uri: "/public/x" },
  { Connection: "close, X-Original-URI, X-Original-Method, X-Forwarded-Uri, X-Forwarded-Method" },
];
/** What only a proxy may ask. */
const QUESTIONS: readonly Readonly<Record<string, string>>[] = [
  { "X-Original-URI": "/public/x", "X-Original-Method": "GET" },
  {
    "X-Forwarded-Uri": "/public/x",
    "X-Forwarded-Method": "GET",
    "X-Forwarded-Host": "localhost",
  },
];

const NAMED = Object.keys(ASKERS).map((name) => [name, missingAsker(name) ?? ""] as const);

describe.each(NAMED)("%s %s", (name, reason) => {
  const stack = new AsyncDisposableStack();
  let backend: EchoBackend;
  let gate: Sallyport;
  let proxy: RunningAsker;
  beforeAll(async () => {
    if (reason !== "") return;
    const keys = stack.use(await temporaryDirectory());
    const pem = OWN.privateKey.export({ format: "pem", type: "pkcs8" });
    await chmod(await keys.write("own.pem", pem), 0o600);
    backend = stack.use(await startEchoBackend());
    const config = { ...CONFIG, tokens: { keys: keys.path, revocation: { logout: true } } };
    gate = stack.use(await startSallyport({ target: backend.url, config }));
    proxy = stack.use(await startAsker(name, backend.url, gate.port));
  });
  afterAll(() => stack.disposeAsync());

  const get = (path: string, question: Question = {}): Promise<Answer> =>
    ask(proxy, path, { agent: elsewhere, ...question });
  /** The paths that reach the application while something is done. */
  const reached = async (act: () => Promise<void>): Promise<string[]> => {
    const before = backend.requests.length;
    await act();
    return backend.requests.slice(before).map(({ url }) => url);
  };
  const test = it.skipIf(reason !== "");

  test("lets callers pass, with their identity and no other", async () => {
    for (const connection of ["close", "close, X-Auth-Subject, X-Auth-Groups, X-Auth-Issuer"]) {
      const headers = { ...FORGED, Connection: connection };
      const echoed = echoedBy(await get("/orders?x=1", { token: gate.token, headers }));
      expect(echoed.url).toBe("/orders?x=1");
      expect(echoed.header("x-auth-subject")).toBe("alice");
      expect(echoed.header("x-auth-groups")).toBe("sales");
      expect(echoed.header("x-auth-issuer")).toBe("sallyport");
      expect(echoed.header("x-auth-client-subject") ?? "").toBe("");
      expect(echoed.header("authorization")).toBeUndefined();
      expect(echoed.header("connection") ?? "").not.toMatch(/x-auth/i);
      const anonymous = await get("/public/x", { headers });
      // Sallyport may refuse it, where the proxy would not overwrite a header without a value.
      if (anonymous.status !== 200) expect(anonymous.status).toBe(400);
      else {
        for (const field of Object.keys(FORGED)) {
          expect(echoedBy(anonymous).header(field) ?? "").toBe("");
        }
      }
    }
    const boss = await signToken(OWN, claims({ groups: ["boss"] }));
    expect(echoedBy(await get("/admin", { token: boss })).header("x-auth-groups")).toBe("boss");
  });

  test("lets no identity in another spelling pass", async () => {
    for (const field of ["X_Auth_Subject", "X-Auth_Subject", "x.auth.subject", "Remote-User"]) {
      const answer = await get("/orders", { token: gate.token, headers: { [field]: "root" } });
      if (answer.status === 200) expect(answer.body).not.toContain("root");
      else expect([400, 403, 500]).toContain(answer.status);
    }
  });

  test("opens no tunnel to the application but for WebSockets", async () => {
    for (const upgrade of ["h2c", "H2C", "TLS/1.0", "websocket, h2c", ["h2c", "websocket"]]) {
      const fields = [upgrade].flat().map((each) => `Upgrade: ${each}`);
      const before = backend.requests.length;
      await exchange(
        proxy,
        request(["GET /public/x HTTP/1.1", "Host: localhost", "Connection: Upgrade", ...fields]),
      );
      for (const { rawHeaders } of backend.requests.slice(before)) {
        const passed = rawHeaders.filter(
          (_text, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "upgrade",
        );
        expect(["", "websocket"]).toContain(passed.join());
      }
    }
  });

  test("lets nobody else pass", async () => {
    const foreign = { ...signingPair("x"), kid: OWN.kid };
    const urls = await reached(async () => {
      const denied = (question?: Question) => get("/orders", question);
      expect((await denied()).status).toBe(401);
      expect((await denied({ token: "x.y.z" })).status).toBe(401);
      const ended = await signToken(OWN, claims({ exp: claims()["iat"] }));
      expect((await denied({ token: ended })).status).toBe(401);
      expect((await denied({ token: await signToken(foreign, claims()) })).status).toBe(401);
      expect((await get("/admin", { token: gate.token })).status).toBe(403);
      expect((await get("/admin/x", { token: gate.token })).status).toBe(403);
      expect((await get("/reads/x", { method: "DELETE" })).status).toBe(401);
      expect((await get("/reads/x", { method: "POST", body: "a body" })).status).toBe(401);
      expect((await get("/orders", { method: "HEAD" })).status).toBe(401);
      for (const headers of QUESTIONS) {
        for (const path of ["/_sallyport/decide", "/_sallyport/%64ecide", "/_Sallyport/Decide"]) {
          expect((await get(path, { headers })).status, path).not.toBe(200);
        }
      }
      for (const headers of RETOLD) {
        expect((await get("/orders", { headers })).status, JSON.stringify(headers)).not.toBe(200);
      }
    });
    expect(urls).toEqual([]);
    expect((await get("/orders")).headers["www-authenticate"]).toMatch(/^Bearer realm="sallyport"/);
  });

  test("tells Sallyport and the application what it sees, not what a client says", async () => {
    for (const [i, fields] of RETOLD.entries()) {
      const headers = { "X-Forwarded-For": "192.0.2.66", "X-Forwarded-Proto": "ftp", ...fields };
      const answer = await get(`/orders/${i}`, { token: gate.token, headers });
      if (answer.status !== 200) {
        expect([400, 500], JSON.stringify(headers)).toContain(answer.status);
        continue;
      }
      const { url, header } = echoedBy(answer);
      expect(url).toBe(`/orders/${i}`);
      const all = ["uri", "method", "url"].map((part) => header(`x-original-${part}`) ?? "");
      all.push(header("x-rewrite-url") ?? "", header("forwarded") ?? "");
      all.push(header("x-forwarded-host") ?? "", header("x-forwarded-uri") ?? "");
      all.push(header("x-forwarded-proto") ?? "");
      expect(all.join(" "), JSON.stringify(headers)).not.toMatch(/public|ftp/);
    }
    const asked = () => gate.log().filter(({ path }) => String(path).startsWith("/orders/"));
    await until(() => asked().length > 0);
    expect(new Set(asked().map(({ client }) => client))).toEqual(new Set([CLIENT]));
  });

  test("lets no trick with paths pass", async () => {
    const draws = fc.sample(pathTargets, 40);
    const tricks = [...PATH_TRICKS, "/./admin", "/public/x/../../admin", "//public/../admin"];
    const send = async (wanted: string, ...more: string[]): Promise<void> => {
      const lines = [`GET ${wanted} HTTP/1.1`, "Host: localhost", "Connection: close", ...more];
      await exchange(proxy, request(lines)).catch(() => undefined);
    };
    const anonymous = await reached(async () => {
      for (const wanted of [...tricks, ...draws]) await send(wanted);
    });
    expect(anonymous.filter((url) => leadsTo("/admin", url))).toEqual([]);
    expect(anonymous.filter((url) => !url.startsWith("/public/"))).toEqual([]);
    const known = await reached(async () => {
      const authorization = `Authorization: Bearer ${gate.token}`;
      for (const wanted of [...tricks, ...draws]) await send(wanted, authorization);
    });
    expect(known.filter((url) => leadsTo("/admin", url))).toEqual([]);
  });

  test("passes bodies whole, and HEAD", async () => {
    const body = "0123456789abcdef".repeat(20_000);
    const echoed = echoedBy(await get("/orders", { method: "POST", token: gate.token, body }));
    expect(echoed).toMatchObject({ method: "POST", bodyLength: body.length });
    expect(echoed.bodySha256).toBe(createHash("sha256").update(body).digest("hex"));
    const head = await get("/orders", { method: "HEAD", token: gate.token });
    expect(head).toMatchObject({ status: 200, body: "" });
    expect(backend.requests.at(-1)?.method).toBe("HEAD");
  });

  test("passes WebSockets of those who may", async () => {
    await using sockets = await startWebSocketBackend();
    await using other = await startAsker(name, sockets.url, gate.port);
    await expect(openWebSocket(other, "/chat")).rejects.toMatchObject({ status: 401 });
    expect(sockets.upgrades).toEqual([]);
    using socket = await openWebSocket(other, "/chat", { authorization: `Bearer ${gate.token}` });
    socket.send("hello");
    expect(await socket.message()).toBe("hello");
    const fields = sockets.upgrades[0]?.rawHeaders.map((text) => text.toLowerCase()) ?? [];
    expect(fields[fields.indexOf("x-auth-subject") + 1]).toBe("alice");
    expect(fields).not.toContain("authorization");
  });

  test("leads people to the page, and back to where they were", async () => {
    const person = { "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document" };
    const page = await get("/orders/17?view=all", { headers: person });
    expect(page).toMatchObject({ status: 401 });
    expect(page.headers["content-type"]).toMatch(/^text\/html/);
    expect(page.headers["x-auth-subject"]).toBeUndefined();
    const [, to = ""] = /name="to" value="([^"]*)"/.exec(page.body) ?? [];
    expect(to).toBe("/orders/17?view=all");
    const [, action = ""] = /<form[^>]* action="([^"]*)"/.exec(page.body) ?? [];
    const signIn = (password: string): Promise<Answer> =>
      get(action, {
        method: "POST",
        headers: {
          "Content-Type": "application/x-www-form-urlencoded",
          Origin: `http://localhost:${proxy.port}`,
          Host: `localhost:${proxy.port}`,
          ...person,
        },
        body: new URLSearchParams({ ...ALICE, password, to }).toString(),
      });
    expect((await signIn("wrong")).status).toBe(401);
    const signedIn = await signIn(ALICE.password);
    expect(signedIn).toMatchObject({ status: 303, headers: { location: to } });
    const cookie = signedIn.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
    const echoed = echoedBy(await get(to, { headers: { ...person, cookie: `${cookie}; a=1` } }));
    expect(echoed.url).toBe(to);
    expect(echoed.header("x-auth-subject")).toBe("alice");
    const kept = ASKERS[name]?.removesTokens === true ? "a=1" : `${cookie}; a=1`;
    expect(echoed.header("cookie")).toBe(kept);
    // Another site may make a browser send the cookie.
    const post = { method: "POST", body: "x" };
    const foreign = { cookie, Origin: "https://evil.example", "Sec-Fetch-Site": "cross-site" };
    expect((await get("/orders", { ...post, headers: foreign })).status).toBe(403);
    const own = { cookie, "Sec-Fetch-Site": "same-origin" };
    expect((await get("/orders", { ...post, headers: own })).status).toBe(200);
    expect(gate.log().filter(({ path }) => path === "/_sallyport/login")).toSatisfy(
      (lines: readonly { readonly client?: unknown }[]) =>
        lines.every(({ client }) => client === CLIENT),
    );
  });

  test("is told no wrong answer while Sallyport reloads", async () => {
    const reloads = () => gate.log().filter(({ msg }) => /reload/i.test(String(msg))).length;
    const before = reloads();
    const stopped = new AbortController();
    const wrong: string[] = [];
    let answers = 0;
    const load = async (token: string | undefined, expected: number): Promise<void> => {
      while (!stopped.signal.aborted) {
        const question = token === undefined ? {} : { token };
        const { status } = await get("/orders", question);
        answers += 1;
        if (status !== expected) wrong.push(`${status}, not ${expected}`);
      }
    };
    const loads = [load(gate.token, 200), load(gate.token, 200), load(undefined, 401)];
    for (let i = 1; i <= 3; i += 1) {
      gate.signal("SIGHUP");
      await until(() => reloads() >= before + i);
      await delay(100);
    }
    stopped.abort();
    await Promise.all(loads);
    expect(wrong).toEqual([]);
    expect(answers).toBeGreaterThan(20);
  });

  test("lets nobody pass whose token was revoked, or when nobody answers", async () => {
    const token = await gate.login(ALICE.username, ALICE.password);
    expect((await get("/orders", { token })).status).toBe(200);
    // Through the proxy, which knows the addresses of Sallyport.
    expect((await get("/api/logout", { method: "POST", token })).status).toBe(200);
    expect((await get("/orders", { token })).status).toBe(401);
    expect(await gate.stop()).toBe(0);
    const urls = await reached(async () => {
      const paths = ["/orders", "/public/x"];
      for (const answer of paths.map((path) => get(path, { token: gate.token }))) {
        expect([403, 500, 502, 503, 504]).toContain((await answer).status);
      }
      await using silent = await startSilentServer(gate.port);
      expect(silent.port).toBe(gate.port);
      const asked = get("/public/x", { token: gate.token }).then(
        ({ status }) => status,
        () => 0,
      );
      const patience = delay(1_000, -1, { ref: false });
      const status = await (ASKERS[name]?.isPatient === true
        ? Promise.race([asked, patience])
        : asked);
      expect([-1, 403, 500, 502, 503, 504]).toContain(status);
    });
    expect(urls).toEqual([]);
  });
});

it.skipIf(missingAsker("HAProxy") !== undefined)(
  "HAProxy lets nobody pass after an error in Lua",
  async () => {
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({ target: backend.url, config: CONFIG });
    const error = 'if txn.sf:path() == "/public/broken" then error("broken") end';
    await using proxy = await startAsker("HAProxy", backend.url, gate.port, (text) =>
      text.replace("local headers = txn", `${error}\n  local headers = txn`),
    );
    expect((await ask(proxy, "/public/whole")).status).toBe(200);
    expect((await ask(proxy, "/public/broken")).status).toBe(503);
    expect(backend.requests.map(({ url }) => url)).not.toContain("/public/broken");
  },
);
