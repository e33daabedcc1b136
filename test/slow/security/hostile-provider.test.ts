/** Providers, people and other sites that attack the sign-in at an OpenID provider. */
import { setTimeout as sleep } from "node:timers/promises";
import { decodeJwt, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, ask } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { signingPair, signToken } from "../../support/foreign-keys.ts";
import { connectHttp2 } from "../../support/http2-client.ts";
import { ALICE, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import {
  CLIENT_ID,
  type ScriptedProvider,
  startScriptedProvider,
} from "../../support/scripted-provider.ts";

let backend: EchoBackend;
let provider: ScriptedProvider;
let other: ScriptedProvider;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  provider = await startScriptedProvider({ sub: "ann", sid: "s-1" });
  other = await startScriptedProvider({ sub: "eve", sid: "s-1" });
  const [one, two] = [provider, other].map(({ issuer }) => ({ issuer, clientId: CLIENT_ID }));
  const routes = [{ name: "everything", path: "/", hosts: ["app.example.com"], upstream: "app" }];
  const browser = {
    providers: [
      { name: "company", ...one },
      { name: "other", ...two },
    ],
  };
  const config = { browser, routes, server: { workers: 2 } };
  gate = await startSallyport({ target: backend.url, config });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([provider, other].map((each) => each[Symbol.asyncDispose]()));
  await backend.close();
});
beforeEach(() => {
  for (const key of Object.keys(provider.script)) delete provider.script[key as "claims"];
});

const HOST = { host: "app.example.com" };
const NAVIGATION = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", ...HOST };
const LOGIN = "/_sallyport/login";

const cookieIn = ({ headers }: Answer): string =>
  (headers["set-cookie"] ?? []).map((field) => field.split(";")[0]).join("; ");

const begin = (name = "company", to = "/") =>
  ask(gate, `${LOGIN}/${name}?to=${encodeURIComponent(to)}`, { headers: NAVIGATION });

function comeBack(path: string, cookie: string, headers = NAVIGATION): Promise<Answer> {
  return ask(gate, path, { headers: { ...headers, ...(cookie === "" ? {} : { cookie }) } });
}

const wayBack = (begun: Answer, at = provider): URL =>
  new URL(at.consent(begun.headers.location ?? ""));

const pathOf = ({ pathname, search }: URL): string => pathname + search;

function expectNobody(answer: Answer, status = 400): void {
  expect(answer.status).toBe(status);
  const session = (answer.headers["set-cookie"] ?? []).find((each) =>
    /^__Host-sallyport=[^;]/.test(each),
  );
  expect(session).toBeUndefined();
}

async function answered(): Promise<Answer> {
  const begun = await begin();
  return comeBack(pathOf(wayBack(begun)), cookieIn(begun));
}

it("an honest provider signs people in", async () => {
  const answer = await answered();
  expect(answer.status).toBe(303);
  expect(cookieIn(answer)).toContain("__Host-sallyport=ey");
});

describe("an ID token is refused", () => {
  it.each([
    ["of another issuer", { iss: "https://evil.example" }],
    ["for another client", { aud: "somebody" }],
    ["for several clients, of which another is authorized", { aud: [CLIENT_ID, "x"], azp: "x" }],
    ["with another nonce", { nonce: "replayed" }],
    ["without a nonce", { nonce: undefined }],
    ["that has expired", { exp: 1_700_000_000 }],
    ["without an end", { exp: undefined }],
    ["without a subject", { sub: undefined }],
    ["with a subject that is no text", { sub: 17 }],
    ["with a control character in its subject", { sub: "ann\r\nX-Admin: 1" }],
    ["with groups that are no names", { groups: [{ admin: true }] }],
  ])("%s", async (_what, claims) => {
    provider.script.claims = claims;
    expectNobody(await answered());
  });

  const stranger = signingPair("provider");
  it.each<[string, (claims: Readonly<Record<string, unknown>>) => Promise<string> | string]>([
    ["signed with a stranger's key of the same id", (claims) => signToken(stranger, claims)],
    ["without a signature", (claims) => new UnsecuredJWT({ ...claims }).encode()],
    [
      "signed with the client's id as a secret",
      (claims) =>
        new SignJWT({ ...claims })
          .setProtectedHeader({ alg: "HS256" })
          .sign(Buffer.from(CLIENT_ID.padEnd(32, "x"))),
    ],
    ["that is none", () => "x.y.z"],
    ["that is empty", () => ""],
  ])("%s", async (_what, idToken) => {
    provider.script.idToken = idToken;
    expectNobody(await answered());
  });
});

describe("a way back is refused", () => {
  it("without the cookie of its sign-in: another site cannot sign a person in as somebody else", async () => {
    const begun = await begin();
    expectNobody(await comeBack(pathOf(wayBack(begun)), ""));
  });

  it("with the cookie of another sign-in", async () => {
    const [mine, theirs] = [await begin(), await begin()];
    expectNobody(await comeBack(pathOf(wayBack(theirs)), cookieIn(mine)));
    // Under the name of theirs.
    const name = cookieIn(theirs).split("=")[0] ?? "";
    const value = cookieIn(mine).split("=")[1] ?? "";
    expectNobody(await comeBack(pathOf(wayBack(theirs)), `${name}=${value}`));
  });

  it("a second time", async () => {
    const begun = await begin();
    const path = pathOf(wayBack(begun));
    expect((await comeBack(path, cookieIn(begun))).status).toBe(303);
    expectNobody(await comeBack(path, cookieIn(begun)));
  });

  it("with two cookies of one name, or one that was changed", async () => {
    const begun = await begin();
    const path = pathOf(wayBack(begun));
    const cookie = cookieIn(begun);
    expectNobody(await comeBack(path, `${cookie}; ${cookie}`));
    expectNobody(await comeBack(path, `${cookie.slice(0, -2)}xx`));
    expectNobody(await comeBack(path, cookie.replace(/=.*/, "=a.b.c.d.e")));
  });

  it("at the address of another provider, with either name of the issuer (mix-up)", async () => {
    const begun = await begin("company");
    const back = wayBack(begun);
    back.pathname = `${LOGIN}/other/callback`;
    expectNobody(await comeBack(pathOf(back), cookieIn(begun)));
    const mixed = await begin("company");
    const url = wayBack(mixed);
    url.searchParams.set("iss", other.issuer);
    expectNobody(await comeBack(pathOf(url), cookieIn(mixed)));
    url.searchParams.delete("iss");
    expectNobody(await comeBack(pathOf(url), cookieIn(mixed)));
    expect(other.exchanges).toEqual([]);
  });

  it.each([
    ["no code", (url: URL) => url.searchParams.delete("code")],
    ["another code", (url: URL) => url.searchParams.set("code", "guess")],
    ["two codes", (url: URL) => url.searchParams.append("code", "guess")],
    ["no state", (url: URL) => url.searchParams.delete("state")],
    ["two states", (url: URL) => url.searchParams.append("state", "x")],
    ["another state", (url: URL) => url.searchParams.set("state", "x".repeat(43))],
    ["an ID token beside the code", (url: URL) => url.searchParams.set("id_token", "x.y.z")],
    ["a signed response instead", (url: URL) => url.searchParams.set("response", "x.y.z")],
    ["a very long state", (url: URL) => url.searchParams.set("state", "s".repeat(6_000))],
  ])("with %s", async (_what, change) => {
    const begun = await begin();
    const url = wayBack(begun);
    change(url);
    expectNobody(await comeBack(pathOf(url), cookieIn(begun)));
  });

  it("if the provider refuses the person, and never shows what it says", async () => {
    const begun = await begin();
    const url = wayBack(begun);
    url.searchParams.delete("code");
    url.searchParams.set("error", "access_denied");
    url.searchParams.set("error_description", "<script>alert(1)</script>");
    const answer = await comeBack(pathOf(url), cookieIn(begun));
    expectNobody(answer, 403);
    expect(answer.body).not.toContain("script");
    expect(gate.lines().join("\n")).not.toContain("alert(1)");
  });

  it("with an error that the browser made up, and the provider stays above suspicion", async () => {
    const begun = await begin();
    const url = wayBack(begun);
    url.searchParams.delete("code");
    url.searchParams.set("error", "owned_by_eve_call_0900_123456");
    expectNobody(await comeBack(pathOf(url), cookieIn(begun)));
    await expect.poll(() => gate.lines().join("\n")).toContain("a person could not sign in");
    expect(gate.lines().join("\n")).not.toMatch(/owned_by_eve|"kind":"signIn".*unavailable/);
  });

  it("that another site makes up, and the true one still counts", async () => {
    const begun = await begin();
    const cookie = cookieIn(begun);
    const slot = /signin-(\d)=/.exec(cookie)?.[1] ?? "";
    const forged = `${LOGIN}/company/callback?state=${slot}x&code=x`;
    expectNobody(await comeBack(forged, cookie));
    expect((await comeBack(pathOf(wayBack(begun)), cookie)).status).toBe(303);
  });

  it("never takes the place of a sign-in that the person has begun, from another site", async () => {
    const own = cookieIn(await begin());
    for (let popup = 0; popup < 20; popup += 1) {
      const headers = { ...NAVIGATION, "sec-fetch-site": "cross-site", cookie: own };
      const answer = await ask(gate, `${LOGIN}/company`, { headers });
      expect(cookieIn(answer).split("=")[0]).not.toBe(own.split("=")[0]);
    }
  });

  it("after a provider that was away for a moment counts once more", async () => {
    const begun = await begin();
    const path = pathOf(wayBack(begun));
    provider.script.answer = (asked, response) => {
      if (asked !== "/token") return false;
      response.writeHead(503).end("{}");
      return true;
    };
    expectNobody(await comeBack(path, cookieIn(begun)), 503);
    delete provider.script.answer;
    expect((await comeBack(path, cookieIn(begun))).status).toBe(303);
  });

  it("with a guessed code, again and again: the provider is asked once", async () => {
    const begun = await begin();
    const url = wayBack(begun);
    url.searchParams.set("code", "guess");
    const before = provider.exchanges.length;
    for (let tries = 0; tries < 5; tries += 1) {
      expectNobody(await comeBack(pathOf(url), cookieIn(begun)));
    }
    // Each of two threads of the proxy asks the one that remembers.
    expect(provider.exchanges.length - before).toBe(1);
  });

  it("at a host that no route names", async () => {
    const headers = { ...NAVIGATION, host: "evil.example" };
    expectNobody(await ask(gate, `${LOGIN}/company`, { headers }));
    const begun = await begin();
    expectNobody(await comeBack(pathOf(wayBack(begun)), cookieIn(begun), headers));
  });
});

it.each([
  ...["https://evil.example/", "//evil.example", "/\\evil.example", "/\t/evil", "/\n//evil"],
  ...[
    "javascript:alert(1)",
    "///evil",
    "/..//evil.example",
    "/_sallyport/logout",
    "x".repeat(9_000),
  ],
])("a sign-in never leads to %j", async (to) => {
  const begun = await begin("company", to);
  const answer = await comeBack(pathOf(wayBack(begun)), cookieIn(begun));
  expect(answer.headers.location).toBe("/");
});

it("the cookies of a sign-in reach no backend, and others do", async () => {
  const begun = await begin();
  const session = cookieIn(await comeBack(pathOf(wayBack(begun)), cookieIn(begun)));
  const cookie = `theme=dark; ${cookieIn(begun)}; ${session.split("; ")[0]}`;
  const { body } = await ask(gate, "/echo", { headers: { ...HOST, cookie } });
  expect(body).toContain("theme=dark");
  expect(body).not.toContain("__Host-");
});

describe("a provider that misbehaves", () => {
  it.each<[string, Partial<ScriptedProvider["script"]>]>([
    ["names an address on this machine", { document: { token_endpoint: "http://127.0.0.2:1/" } }],
    ["names an address without TLS", { document: { token_endpoint: "http://id.example/t" } }],
    ["names a local file", { document: { token_endpoint: "file:///etc/passwd" } }],
    ["names no address", { document: { token_endpoint: undefined } }],
    ["names another issuer", { document: { issuer: "https://evil.example" } }],
    [
      "redirects",
      {
        answer: (_path, response) => {
          response.writeHead(302, { location: `${other.issuer}/token` }).end();
          return true;
        },
      },
    ],
    [
      "answers hugely",
      {
        answer: (_path, response) => {
          response.writeHead(200, { "content-type": "application/json" });
          response.end(`{"issuer":"${"x".repeat(600_000)}"}`);
          return true;
        },
      },
    ],
    [
      "switches protocols",
      {
        answer: (_path, response) => {
          response.socket?.end(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
          );
          return true;
        },
      },
    ],
    [
      "sends interim responses without end",
      {
        answer: (_path, response) => {
          response.socket?.write("HTTP/1.1 102 Processing\r\n\r\n".repeat(100));
          return true;
        },
      },
    ],
    [
      "switches protocols when it is asked for the token",
      {
        answer: (path, response) => {
          if (path !== "/token") return false;
          response.socket?.end(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
          );
          return true;
        },
      },
    ],
    [
      "answers with other than JSON",
      {
        answer: (_path, response) => {
          response.end("<html>");
          return true;
        },
      },
    ],
    [
      "has a fault",
      {
        answer: (_path, response) => {
          response.writeHead(500).end("{}");
          return true;
        },
      },
    ],
  ])("%s: 503, and the next sign-in works", async (_what, script) => {
    await using bad = await startScriptedProvider({ sub: "ann" });
    Object.assign(bad.script, script);
    const browser = { providers: [{ name: "bad", issuer: bad.issuer, clientId: CLIENT_ID }] };
    await using own = await startSallyport({ target: backend.url, config: { browser } });
    const headers = { ...NAVIGATION };
    const start = await ask(own, `${LOGIN}/bad?to=/x`, { headers });
    let last = start;
    if (start.status === 303) {
      const path = pathOf(wayBack(start, bad));
      last = await ask(own, path, { headers: { ...headers, cookie: cookieIn(start) } });
    }
    expect(last.status).toBe(503);
    expect(last.headers["retry-after"]).toBe("5");
    expect(last.body).toContain("The sign-in provider does not answer");
    await expect.poll(() => own.lines().join("\n")).toContain("a remote check is unavailable");
    for (const key of Object.keys(bad.script)) delete bad.script[key as "claims"];
    await sleep(1_100);
    const again = await ask(own, `${LOGIN}/bad?to=/x`, { headers });
    expect(again.status).toBe(303);
    if (start.status === 303) return;
    const path = pathOf(wayBack(again, bad));
    const done = await ask(own, path, { headers: { ...headers, cookie: cookieIn(again) } });
    expect(done).toMatchObject({ status: 303, headers: { location: "/x" } });
  });

  it("and answers nobody: 503 in six seconds, and those who are signed in stay so", async () => {
    const session = { cookie: cookieIn(await answered()), ...HOST };
    const begun = await begin();
    provider.script.answer = () => true;
    const asked = performance.now();
    expectNobody(await comeBack(pathOf(wayBack(begun)), cookieIn(begun)), 503);
    expect(performance.now() - asked).toBeLessThan(8_000);
    expect((await ask(gate, "/", { headers: session })).status).toBe(200);
  }, 20_000);
});

it("one client with many sign-ins at a slow provider takes nobody else's place", async () => {
  provider.script.answer = (path) => path === "/token";
  const held = Array.from({ length: 48 }, async () => {
    const begun = await begin();
    return comeBack(pathOf(wayBack(begun)), cookieIn(begun));
  });
  await expect.poll(() => provider.asked()).toBeGreaterThan(16);
  const begun = await begin("other");
  const answer = await comeBack(pathOf(wayBack(begun, other)), cookieIn(begun));
  expect(answer.status).toBe(303);
  const headers = { "content-type": "application/x-www-form-urlencoded", ...HOST };
  const token = await provider.logoutToken({ sid: "s-77" });
  const body = new URLSearchParams({ logout_token: token }).toString();
  const ended = await ask(gate, `${LOGIN}/company/backchannel`, { method: "POST", headers, body });
  expect(ended.status).toBe(200);
  for (const each of await Promise.all(held)) expect(each.status).toBe(503);
}, 30_000);

it("a provider that hangs takes the places of neither logins nor sign-outs in any thread", async () => {
  await using silent = await startScriptedProvider({ sub: "ann" });
  silent.script.answer = () => true;
  const browser = { providers: [{ name: "silent", issuer: silent.issuer, clientId: CLIENT_ID }] };
  const config = { browser, server: { workers: 2, http2: true } };
  await using own = await startSallyport({ target: backend.url, config });
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const headers = { ...form, "sec-fetch-site": "same-origin" };
  const body = new URLSearchParams(ALICE).toString();
  const logIn = () => ask(own, LOGIN, { method: "POST", headers, body });
  const sessions = await Promise.all(Array.from({ length: 8 }, logIn));
  const clients = await Promise.all(Array.from({ length: 12 }, () => connectHttp2(own)));
  const held = Promise.allSettled(
    clients.flatMap((client) =>
      Array.from({ length: 100 }, () => client.ask({ ":path": `${LOGIN}/silent` })),
    ),
  );
  await expect.poll(() => silent.asked()).toBeGreaterThan(0);
  const out = sessions.map((each) => {
    const session = { ...headers, cookie: cookieIn(each) };
    return ask(own, "/_sallyport/logout", { method: "POST", headers: session, body: "" });
  });
  const answers = await Promise.all([...out, ...Array.from({ length: 8 }, logIn)]);
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 303));
  for (const each of await held) expect(each).toMatchObject({ value: { status: 503 } });
  for (const client of clients) await client[Symbol.asyncDispose]();
}, 30_000);

it("the logout token of one provider ends no session of another", async () => {
  const session = { cookie: cookieIn(await answered()), ...HOST };
  const headers = { "content-type": "application/x-www-form-urlencoded", ...HOST };
  const body = (token: string) => new URLSearchParams({ logout_token: token }).toString();
  const end = (name: string, token: string) =>
    ask(gate, `${LOGIN}/${name}/backchannel`, { method: "POST", headers, body: body(token) });
  const theirs = await other.logoutToken({ sid: "s-1" });
  expect((await end("other", theirs)).status).toBe(200);
  expect((await end("company", theirs)).status).toBe(400);
  expect((await ask(gate, "/", { headers: session })).status).toBe(200);
  expect((await end("company", await provider.logoutToken({ sid: "s-1" }))).status).toBe(200);
  expect((await ask(gate, "/", { headers: session })).status).toBe(401);
});

it.each<[string, (claims: Readonly<Record<string, unknown>>) => Promise<string> | string]>([
  [
    "signed with a stranger's key of the same id",
    (claims) => signToken(signingPair("provider"), claims),
  ],
  ["without a signature", (claims) => new UnsecuredJWT({ ...claims }).encode()],
  [
    "signed with the public key as a secret",
    (claims) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: "HS256", kid: "provider" })
        .sign(Buffer.from(JSON.stringify(provider.pair.jwk))),
  ],
  [
    "that is an access token",
    (claims) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: "ES256", kid: "provider", typ: "at+jwt" })
        .sign(provider.pair.privateKey),
  ],
])("no session ends by a logout token %s", async (_what, sign) => {
  const claims = decodeJwt(await provider.logoutToken({ sid: "s-8" }));
  const body = new URLSearchParams({ logout_token: await sign(claims) }).toString();
  const headers = { "content-type": "application/x-www-form-urlencoded", ...HOST };
  const path = `${LOGIN}/company/backchannel`;
  expectNobody(await ask(gate, path, { method: "POST", headers, body }));
});
