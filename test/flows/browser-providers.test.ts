/** People who sign in at an OpenID provider. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, ask, fieldsOf } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import {
  CLIENT_ID,
  type ScriptedProvider,
  startScriptedProvider,
} from "../support/scripted-provider.ts";
import { scrape } from "../support/scrape.ts";

let backend: EchoBackend;
let provider: ScriptedProvider;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  const person = { sub: "u-17", email: "ann@example.com", email_verified: true, sid: "s-1" };
  provider = await startScriptedProvider(person);
  gate = await startSallyport({ target: backend.url, config: { browser: browserOf(provider) } });
});
afterAll(async () => {
  await gate.close();
  await provider[Symbol.asyncDispose]();
  await backend.close();
});
beforeEach(() => {
  for (const key of Object.keys(provider.script)) delete provider.script[key as "claims"];
});

function browserOf({ issuer }: ScriptedProvider, more: object = {}) {
  const client = { clientId: CLIENT_ID, clientSecret: "c0mpany-secret" };
  return {
    providers: [
      {
        name: "company",
        label: "Company account",
        issuer,
        ...client,
        claims: { subject: "email" },
        logout: "provider",
        require: { groups: { any: ["staff"] } },
        ...more,
      },
    ],
  };
}

const NAVIGATION = {
  "sec-fetch-mode": "navigate",
  "sec-fetch-dest": "document",
  "sec-fetch-site": "none",
  host: "app.example.com",
};

const cookiesIn = ({ headers }: Answer): string =>
  (headers["set-cookie"] ?? [])
    .filter((field) => !field.includes("Max-Age=0"))
    .map((field) => field.split(";")[0])
    .join("; ");

async function begin(to = "/orders?x=1", cookie = ""): Promise<Answer> {
  const path = `/_sallyport/login/company?to=${encodeURIComponent(to)}`;
  return ask(gate, path, { headers: { ...NAVIGATION, ...(cookie === "" ? {} : { cookie }) } });
}

/** Follows the way back from the provider. */
async function comeBack(begun: Answer, change = (url: URL) => url): Promise<Answer> {
  const back = change(new URL(provider.consent(begun.headers.location ?? "")));
  const headers = { ...NAVIGATION, "sec-fetch-site": "cross-site", cookie: cookiesIn(begun) };
  return ask(gate, back.pathname + back.search, { headers });
}

async function signIn(claims: object = {}): Promise<Answer> {
  provider.script.claims = { groups: ["staff"], ...claims };
  return comeBack(await begin());
}

const sessionOf = (answer: Answer) => ({ cookie: cookiesIn(answer), host: "app.example.com" });

describe("signing in at a provider", () => {
  it("leads there with PKCE, and keeps what it needs in an encrypted cookie", async () => {
    const begun = await begin();
    expect(begun.status).toBe(303);
    const { origin, pathname, searchParams } = new URL(begun.headers.location ?? "");
    expect(origin + pathname).toBe(`${provider.issuer}/authorize`);
    expect(Object.fromEntries(searchParams)).toMatchObject({
      client_id: CLIENT_ID,
      redirect_uri: "https://app.example.com/_sallyport/login/company/callback",
      response_type: "code",
      scope: "openid email profile",
      code_challenge_method: "S256",
    });
    const [cookie = ""] = begun.headers["set-cookie"] ?? [];
    expect(cookie).toMatch(
      /^__Host-sallyport-signin-\d=[\w.-]+; Max-Age=600; Path=\/; Secure; HttpOnly; SameSite=Lax$/,
    );
    expect(cookie.length).toBeLessThan(1_200);
    expect(begun.headers["cache-control"]).toBe("no-store");
  });

  it("comes back to the page that the person wanted, with a token of our own", async () => {
    const answer = await signIn();
    expect(answer).toMatchObject({ status: 303, headers: { location: "/orders?x=1" } });
    const [session = "", pending = ""] = answer.headers["set-cookie"] ?? [];
    expect(session).toMatch(/^__Host-sallyport=ey/);
    expect(pending).toMatch(/^__Host-sallyport-signin-\d=; Max-Age=0/);
    const [, payload = ""] = session.split(/[=;]/)[1]?.split(".") ?? [];
    expect(JSON.parse(Buffer.from(payload, "base64url").toString())).toMatchObject({
      iss: "sallyport",
      sub: "ann@example.com",
      groups: ["staff"],
      idp: "company",
      auth_time: expect.any(Number),
      sid: expect.any(String),
      idp_sub: expect.any(String),
    });
    const echoed = echoedBy(await ask(gate, "/orders", { headers: sessionOf(answer) }));
    expect(echoed.header("x-auth-subject")).toBe("ann@example.com");
    const [{ form, authorization } = { form: new URLSearchParams() }] =
      provider.exchanges.slice(-1);
    expect(form.get("grant_type")).toBe("authorization_code");
    expect(authorization).toMatch(/^Basic /);
    expect(gate.lines().join("\n")).not.toContain("c0mpany-secret");
    expect(gate.lines().join("\n")).not.toContain(form.get("code"));
  });

  it("reads claims from the UserInfo endpoint where the ID token lacks them", async () => {
    provider.script.userinfo = { groups: ["staff", "ops"] };
    const answer = await comeBack(await begin());
    const session = await ask(gate, "/_sallyport/session", { headers: sessionOf(answer) });
    expect(fieldsOf(session)).toMatchObject({
      username: "ann@example.com",
      groups: ["staff", "ops"],
      success: true,
    });
  });

  it("shows a button beside the form", async () => {
    const page = await ask(gate, "/orders?a=b", { headers: NAVIGATION });
    expect(page.status).toBe(401);
    expect(page.body).toContain('href="/_sallyport/login/company?to=%2Forders%3Fa%3Db"');
    expect(page.body).toContain("Company account");
    expect(page.body).toContain('name="password"');
  });

  it("does not let two tabs race", async () => {
    provider.script.claims = { groups: ["staff"] };
    const one = await begin("/one");
    const two = await begin("/two", cookiesIn(one));
    const both = `${cookiesIn(one)}; ${cookiesIn(two)}`;
    const answers = [two, one].map(async (begun) => {
      const back = new URL(provider.consent(begun.headers.location ?? ""));
      const headers = { ...NAVIGATION, cookie: both };
      return (await ask(gate, back.pathname + back.search, { headers })).headers.location;
    });
    expect(await Promise.all(answers)).toEqual(["/two", "/one"]);
  });

  it("never fills the head of requests, whoever makes a browser begin sign-ins", async () => {
    const kept = new Map<string, string>();
    for (let tab = 0; tab < 40; tab += 1) {
      const to = `/${"x".repeat(tab % 2 === 0 ? 2_000 : 254)}`;
      // Half of them at the same moment, without what the others have brought.
      const cookie = tab % 2 === 0 ? [...kept.values()].join("; ") : "";
      const [field = ""] = (await begin(to, cookie)).headers["set-cookie"] ?? [];
      kept.set(field.split("=")[0] ?? "", field.split(";")[0] ?? "");
    }
    expect(kept.size).toBeLessThanOrEqual(8);
    const bytes = [...kept.values()].join("; ").length;
    expect(bytes).toBeLessThan(8_192);
    const session = cookiesIn(await signIn());
    const cookie = `${[...kept.values()].join("; ")}; ${session}; theme=${"x".repeat(2_000)}`;
    const answer = await ask(gate, "/orders", { headers: { ...NAVIGATION, cookie } });
    expect(answer.status).toBe(200);
  });

  it("refuses people who may not sign in, by a page, and says why in the log", async () => {
    const answer = await signIn({ groups: ["guests"] });
    expect(answer.status).toBe(403);
    expect(answer.body).toContain("Your account may not sign in here");
    expect(answer.headers["set-cookie"]).toBeUndefined();
    await expect
      .poll(gate.log)
      .toContainEqual(
        expect.objectContaining({ msg: "a person could not sign in", reason: "sign_in_refused" }),
      );
  });

  it.each<[string, object, object | undefined, number]>([
    ["is verified", {}, undefined, 303],
    ["is verified, in words", { email_verified: "true" }, undefined, 303],
    ["is not verified", { email_verified: false }, undefined, 403],
    ["is not said to be verified", { email_verified: undefined }, undefined, 403],
    ["is called verified by another word", { email_verified: "no" }, undefined, 403],
    [
      "is verified elsewhere",
      { email_verified: undefined },
      { email: "ann@example.com", email_verified: true },
      303,
    ],
    [
      "is not verified elsewhere",
      { email_verified: undefined },
      { email: "ann@example.com", email_verified: false },
      403,
    ],
    [
      "has another verified one beside it",
      { email_verified: undefined },
      { email: "eve@example.com", email_verified: true },
      403,
    ],
    [
      "comes from elsewhere, unverified",
      { email: undefined },
      { email: "ann@example.com", email_verified: false },
      403,
    ],
  ])("a person whose address %s", async (_what, claims, userinfo, status) => {
    provider.script.userinfo = userinfo as Record<string, unknown>;
    expect((await signIn(claims)).status).toBe(status);
  });

  it("counts sign-ins by provider and result", async () => {
    await signIn();
    const metrics = await scrape(gate);
    const counted = (result: string) =>
      metrics.sum("sallyport_remote_checks_total", 'kind="signIn"', `result="${result}"`);
    expect(counted("allowed")).toBeGreaterThan(0);
    expect(counted("denied")).toBeGreaterThan(0);
  });
});

it("the status says that people can sign in", async () => {
  await signIn();
  const admin = { port: gate.adminPort };
  const row = { kind: "sign-in provider", name: "company", state: "good", words: "no failure" };
  expect(fieldsOf(await ask(admin, "/-/status"))["dependencies"]).toContainEqual(row);
  const page = await ask(admin, "/-/", { headers: { accept: "text/html" } });
  expect(page.body).toContain("sign-in provider");
});

it("a host that is longer than a name can be is refused, and the provider stays above suspicion", async () => {
  const headers = { ...NAVIGATION, host: "a.".repeat(4_000) };
  const answer = await ask(gate, "/_sallyport/login/company", { headers });
  expect(answer.status).toBe(400);
  expect(gate.lines().join("\n")).not.toContain("too long");
});

it("a way back that somebody made up does not end the outage of a provider", async () => {
  await using own = await startSallyport({
    target: backend.url,
    config: { browser: browserOf(provider) },
  });
  provider.script.answer = (_path, response) => {
    response.writeHead(500).end("{}");
    return true;
  };
  const path = "/_sallyport/login/company";
  expect((await ask(own, path, { headers: NAVIGATION })).status).toBe(503);
  expect((await ask(own, `${path}/callback?state=0x&code=x`)).status).toBe(400);
  const row = { kind: "sign-in provider", name: "company", state: "bad", words: "unavailable" };
  const status = await ask({ port: own.adminPort }, "/-/status");
  expect(fieldsOf(status)["dependencies"]).toContainEqual(row);
});

describe("signing out", () => {
  const post = (path: string, headers: Record<string, string>) =>
    ask(gate, path, { method: "POST", headers: { "sec-fetch-site": "same-origin", ...headers } });

  it("leads to the provider, too", async () => {
    const session = sessionOf(await signIn());
    const answer = await post("/_sallyport/logout", session);
    expect(answer.status).toBe(303);
    const { pathname, searchParams } = new URL(answer.headers.location ?? "");
    expect(pathname).toBe("/logout");
    expect(searchParams.get("post_logout_redirect_uri")).toBe(
      "https://app.example.com/_sallyport/login",
    );
    expect((await ask(gate, "/orders", { headers: session })).status).toBe(401);
  });

  it("of somebody with a password stays here", async () => {
    const form = { "content-type": "application/x-www-form-urlencoded" };
    const body = new URLSearchParams(ALICE).toString();
    const headers = { ...form, "sec-fetch-site": "same-origin", host: "app.example.com" };
    const answer = await ask(gate, "/_sallyport/login", { method: "POST", headers, body });
    const left = await post("/_sallyport/logout", sessionOf(answer));
    expect(left.headers.location).toBe("/_sallyport/login");
  });

  const endedBy = (token: string, at = gate) =>
    ask(at, "/_sallyport/login/company/backchannel", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ logout_token: token }).toString(),
    });
  const isSignedIn = async (session: Record<string, string>) =>
    (await ask(gate, "/orders", { headers: session })).status === 200;

  it("by the provider ends one session, and no other", async () => {
    const one = sessionOf(await signIn({ sid: "s-1" }));
    const two = sessionOf(await signIn({ sid: "s-2" }));
    expect([await isSignedIn(one), await isSignedIn(two)]).toEqual([true, true]);
    const answer = await endedBy(await provider.logoutToken({ sid: "s-1" }));
    expect(answer).toMatchObject({ status: 200, headers: { "cache-control": "no-store" } });
    expect([await isSignedIn(one), await isSignedIn(two)]).toEqual([false, true]);
    // What `token inspect` asks.
    const query = new URLSearchParams({ subject: "ann@example.com", issuer: "sallyport" });
    const asked = async (token = "") => {
      const { sid } = JSON.parse(Buffer.from(token, "base64url").toString()) as { sid: string };
      query.set("sid", sid);
      query.set("iat", String(Math.floor(Date.now() / 1_000) - 2));
      const answer = await ask({ port: gate.adminPort }, `/-/revoked?${query.toString()}`);
      return fieldsOf(answer)["revoked"];
    };
    const claims = [one, two].map(({ cookie }) => cookie.split(".")[1]);
    expect(await Promise.all(claims.map(asked))).toEqual([true, false]);
    // A provider may keep its session id: the next sign-in of the same session counts.
    await expect
      .poll(async () => isSignedIn(sessionOf(await signIn({ sid: "s-1" }))), { timeout: 5_000 })
      .toBe(true);
  });

  it("by the provider ends all sessions of an account, and no later one by the same token", async () => {
    const one = sessionOf(await signIn({ sid: "s-3" }));
    const iat = Math.floor(Date.now() / 1_000) - 90;
    const old = await provider.logoutToken({ sub: "u-17", iat });
    expect((await endedBy(old)).status).toBe(200);
    expect(await isSignedIn(one)).toBe(true);
    expect((await endedBy(await provider.logoutToken({ sub: "u-17" }))).status).toBe(200);
    expect(await isSignedIn(one)).toBe(false);
    // `iat` counts whole seconds: the next sign-in works from the next one on.
    await expect
      .poll(async () => isSignedIn(sessionOf(await signIn({ sid: "s-4" }))), { timeout: 5_000 })
      .toBe(true);
  });

  it("by the provider ends a session whose ID token named none, if the logout token names both", async () => {
    await expect.poll(async () => isSignedIn(sessionOf(await signIn()))).toBe(true);
    const one = sessionOf(await signIn({ sid: undefined }));
    const other = sessionOf(await signIn({ sid: "s-6" }));
    expect((await endedBy(await provider.logoutToken({ sid: "s-5", sub: "u-17" }))).status).toBe(
      200,
    );
    expect([await isSignedIn(one), await isSignedIn(other)]).toEqual([false, true]);
  });

  it("by the provider counts when its issuer gets a slash before, and when it is removed after", async () => {
    await using own = await startSallyport({
      target: backend.url,
      config: { browser: browserOf(provider) },
    });
    provider.script.claims = { groups: ["staff"], sid: "s-10" };
    const begun = await ask(own, "/_sallyport/login/company", { headers: NAVIGATION });
    const back = new URL(provider.consent(begun.headers.location ?? ""));
    const headers = { ...NAVIGATION, cookie: cookiesIn(begun) };
    const session = sessionOf(await ask(own, back.pathname + back.search, { headers }));
    const status = async () => (await ask(own, "/orders", { headers: session })).status;
    const reload = async (browser: object) => {
      await editConfiguration(own, (config) => {
        config["browser"] = browser;
      });
      const answer = await ask({ port: own.adminPort }, "/-/reload", { method: "POST" });
      expect(answer.status).toBe(200);
    };
    await reload(browserOf(provider, { issuer: `${provider.issuer}/` }));
    expect(await status()).toBe(200);
    const end = async () => {
      await endedBy(await provider.logoutToken({ sid: "s-10" }), own);
      return status();
    };
    // `iat` counts whole seconds.
    await expect.poll(end, { timeout: 5_000 }).toBe(401);
    await reload({});
    expect(await status()).toBe(401);
  });

  it.each([
    ["another event", { events: { other: {} } }],
    ["no event", { events: undefined }],
    ["a nonce: it is an ID token", { nonce: "n" }],
    ["another audience", { aud: "other" }],
    ["another issuer", { iss: "https://evil.example" }],
    ["an old one", { iat: 1_700_000_000 }],
    ["an expired one", { exp: 1_700_000_000 }],
    ["no id", { jti: undefined }],
    ["nobody", { sub: undefined, sid: undefined }],
    ["no session's name", { sid: "", sub: "" }],
  ])("is not done by a logout token of %s", async (_name, claims) => {
    const session = sessionOf(await signIn({ sid: "s-9" }));
    const answer = await endedBy(await provider.logoutToken({ sid: "s-9", ...claims }));
    expect(answer.status).toBe(400);
    expect(await isSignedIn(session)).toBe(true);
  });
});
