import { hash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, ask, fieldsOf } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { ALICE, startSallyport, type Sallyport } from "../support/sallyport.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  const routes = [
    { name: "public", path: "/public/", auth: "none", upstream: "app" },
    { name: "boss", path: "/boss", require: { groups: { any: ["boss"] } }, upstream: "app" },
    { name: "everything", path: "/", upstream: "app" },
  ];
  const browser = { page: { title: "Orders <&>", message: "Ask platform@example.com" } };
  gate = await startSallyport({ target: backend.url, config: { browser, routes } });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

const NAVIGATION = {
  "sec-fetch-mode": "navigate",
  "sec-fetch-dest": "document",
  "sec-fetch-site": "none",
  accept: "text/html,application/xhtml+xml",
};
const SAME_ORIGIN = { "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate" };
const FORM = { "content-type": "application/x-www-form-urlencoded" };

function signIn(fields: Record<string, string>, headers: Record<string, string> = SAME_ORIGIN) {
  const body = new URLSearchParams(fields).toString();
  const sent = { ...FORM, ...headers };
  return ask(gate, "/_sallyport/login", { method: "POST", headers: sent, body });
}

function cookieIn({ headers }: Answer): string {
  const [cookie = ""] = headers["set-cookie"] ?? [];
  return cookie.split(";")[0] ?? "";
}

const signedIn = async (): Promise<Record<string, string>> => ({
  cookie: cookieIn(await signIn(ALICE)),
});

describe("a person without a session", () => {
  it("gets the sign-in page as the body of the 401", async () => {
    const answer = await ask(gate, "/orders?x=1&y=%22", { headers: NAVIGATION });
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toBe('Bearer realm="sallyport"');
    expect(answer.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "x-frame-options": "DENY",
    });
    expect(answer.headers.vary).toContain("Sec-Fetch-Mode");
    expect(answer.body).toContain("Orders &lt;&amp;&gt;");
    // Without it, the browser asks for /favicon.ico, which would be one more refusal.
    expect(answer.body).toContain('<link rel="icon" href="data:,"');
    expect(answer.body).toContain('name="to" value="/orders?x=1&amp;y=%22"');
    expect(answer.body).not.toContain("<script");
    expect(Buffer.byteLength(answer.body)).toBeLessThan(12 * 1024);
    // Browsers hash what stands between the tags, byte for byte.
    const [, style = ""] = /<style>(.*?)<\/style>/s.exec(answer.body) ?? [];
    const policy = answer.headers["content-security-policy"];
    expect(policy).toContain(`'sha256-${hash("sha256", style, "base64")}'`);
    expect(policy).not.toContain("form-action");
  });

  it("is a navigation without Sec-Fetch-* if it accepts HTML first; everybody else gets the envelope", async () => {
    const html = await ask(gate, "/", { headers: { accept: "text/html" } });
    expect(html.headers["content-type"]).toContain("text/html");
    for (const headers of [
      {},
      { accept: "application/json, text/html" },
      { ...NAVIGATION, "sec-fetch-dest": "iframe" },
      { ...NAVIGATION, "sec-fetch-mode": "cors" },
    ]) {
      const answer = await ask(gate, "/", { headers });
      expect(fieldsOf(answer)).toMatchObject({ success: false });
    }
    const post = await ask(gate, "/", { method: "POST", headers: NAVIGATION });
    expect(fieldsOf(post)).toMatchObject({ success: false });
  });
});

describe("signing in", () => {
  it("goes where the person wanted to go, with a cookie for this host alone", async () => {
    const answer = await signIn({ ...ALICE, to: "/orders?x=1" });
    expect(answer).toMatchObject({ status: 303, headers: { location: "/orders?x=1" } });
    const [cookie = ""] = answer.headers["set-cookie"] ?? [];
    expect(cookie).toMatch(
      /^__Host-sallyport=[\w.-]+; Max-Age=18000; Path=\/; Secure; HttpOnly; SameSite=Lax$/,
    );
  });

  it("fails with the page again, and says nothing about names", async () => {
    const answer = await signIn({ username: ALICE.username, password: "wrong", to: "/orders" });
    expect(answer.status).toBe(401);
    expect(answer.body).toContain("Invalid username or password");
    expect(answer.body).toContain('value="/orders"');
    expect(answer.headers["set-cookie"]).toBeUndefined();
    expect((await signIn({ username: "", password: "x" })).status).toBe(400);
  });

  it("by JSON sets the cookie and returns no token", async () => {
    const headers = { "content-type": "application/json", ...SAME_ORIGIN };
    const body = JSON.stringify(ALICE);
    const answer = await ask(gate, "/_sallyport/login", { method: "POST", headers, body });
    expect(Object.keys(fieldsOf(answer))).toEqual(["id", "message", "success"]);
    const session = { cookie: cookieIn(answer) };
    expect((await ask(gate, "/orders", { headers: session })).status).toBe(200);
  });

  it.each([
    ["another site", { "sec-fetch-site": "cross-site" }],
    ["another origin", { origin: "https://evil.example" }],
    ["nobody knows where", {}],
    ["a sandboxed frame", { origin: "null" }],
  ])("is refused from %s", async (_name, headers) => {
    const answer = await signIn(ALICE, headers);
    expect(answer.status).toBe(403);
    expect(answer.headers["set-cookie"]).toBeUndefined();
  });

  it.each([
    ...[
      "https://evil.example/",
      "//evil.example",
      "/\\evil.example",
      "\\\\evil.example",
      "/\t/evil",
    ],
    ...[
      "/\n//evil",
      "javascript:alert(1)",
      "/%0d%0aSet-Cookie: a=b",
      "///evil",
      "/..//evil.example",
    ],
    ...[
      "/./\\evil",
      "http:evil.example",
      "/ /evil",
      "@evil.example",
      "",
      "/\u200b/evil",
      "/a/..//evil",
    ],
  ])("never leads to another host: %j", async (to) => {
    const { headers, status } = await signIn({ ...ALICE, to });
    expect(status).toBe(303);
    const { location = "" } = headers;
    expect(new URL(location, "https://here.example").origin).toBe("https://here.example");
    expect(location.startsWith("//")).toBe(false);
    expect(Object.keys(headers)).not.toContain("a");
  });
});

describe("a session", () => {
  it("is known on every route, and its cookie reaches no backend", async () => {
    const { cookie = "" } = await signedIn();
    for (const path of ["/orders", "/public/x"]) {
      const headers = { cookie: `theme=dark; ${cookie}; other=1` };
      const answer = await ask(gate, path, { headers });
      expect(answer.status).toBe(200);
      expect(answer.body).not.toContain("__Host-sallyport");
      expect(answer.body).toContain("theme=dark; other=1");
    }
  });

  it("leaves Authorization of another scheme to the application, but a second token is 401", async () => {
    const session = await signedIn();
    const basic = await ask(gate, "/x", { headers: { ...session, authorization: "Basic YTpi" } });
    expect(basic.body).toContain("Basic YTpi");
    const two = await ask(gate, "/x", { headers: session, token: gate.token });
    expect(two.status).toBe(401);
    const anonymous = await ask(gate, "/public/x", { headers: { authorization: "Basic YTpi" } });
    expect(anonymous.body).not.toContain("Basic YTpi");
  });

  it("is described to the application", async () => {
    const headers = await signedIn();
    const answer = await ask(gate, "/_sallyport/session", { headers });
    const fields = fieldsOf(answer);
    expect(fields).toMatchObject({ success: true, username: "alice", groups: ["sales"] });
    expect(String(fields["expires"])).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect((await ask(gate, "/_sallyport/session")).status).toBe(401);
    expect((await ask(gate, "/_sallyport/session", { token: gate.token })).status).toBe(401);
  });

  it("changes nothing for another site", async () => {
    const session = await signedIn();
    const post = { method: "POST", body: "x" };
    const answers = await Promise.all(
      [{ "sec-fetch-site": "cross-site" }, {}, { "sec-fetch-site": "same-origin" }].map((from) =>
        ask(gate, "/x", { ...post, headers: { ...session, ...from } }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 200]);
  });

  it("that may not open a page says so, and offers to sign out", async () => {
    const headers = { ...NAVIGATION, ...(await signedIn()) };
    const answer = await ask(gate, "/boss", { headers });
    expect(answer.status).toBe(403);
    expect(answer.body).toContain("signed in as alice");
    expect(answer.body).toContain('action="/_sallyport/logout"');
  });

  it("has a page with a button that ends it, for applications without one", async () => {
    const headers = { ...NAVIGATION, ...(await signedIn()) };
    const page = await ask(gate, "/_sallyport/logout", { headers });
    expect(page.status).toBe(200);
    expect(page.body).toContain("You are signed in as alice.");
    expect(page.body).toContain('<form method="post" action="/_sallyport/logout">');
    // A link ends nothing: any page may have one.
    expect((await ask(gate, "/orders", { headers })).status).toBe(200);
    const stranger = await ask(gate, "/_sallyport/logout", { headers: NAVIGATION });
    expect(stranger).toMatchObject({ status: 401 });
  });

  it.each(["/_sallyport/logout", "/api/logout"])("ends at %s, at once", async (path) => {
    const session = await signedIn();
    const foreign = { method: "POST", headers: { ...session, "sec-fetch-site": "cross-site" } };
    expect((await ask(gate, path, foreign)).status).toBe(403);
    const answer = await ask(gate, path, {
      method: "POST",
      headers: { ...session, ...SAME_ORIGIN },
    });
    expect(answer.status).toBe(path === "/api/logout" ? 200 : 303);
    expect(answer.headers["set-cookie"]).toEqual([
      "__Host-sallyport=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Lax",
    ]);
    expect((await ask(gate, "/x", { headers: session })).status).toBe(401);
  });
});

it("whose session has ended signs out, too", async () => {
  for (const cookie of ["", "__Host-sallyport=x"]) {
    const headers = { ...FORM, ...SAME_ORIGIN, cookie };
    const answer = await ask(gate, "/_sallyport/logout", { method: "POST", headers, body: "" });
    expect(answer).toMatchObject({ status: 303, headers: { location: "/_sallyport/login" } });
    expect(answer.headers["set-cookie"]?.[0]).toContain("Max-Age=0");
  }
});

it("another site cannot have a browser drop the session: its form comes without the cookie", async () => {
  for (const from of [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }, {}]) {
    const headers = { ...FORM, ...from };
    const answer = await ask(gate, "/_sallyport/logout", { method: "POST", headers, body: "" });
    expect(answer.status).toBe(401);
    expect(answer.headers["set-cookie"]).toBeUndefined();
  }
});

it.each(["/_sallyport/logout", "/%5Fsallyport/logout", "/x/%2e%2e/%5fSALLYPORT/login/x?to=/y"])(
  "signing in never leads to an endpoint of Sallyport's own: %s",
  async (to) => {
    const { headers } = await signIn({ ...ALICE, to });
    expect(headers.location).toBe("/");
  },
);

it.each(["\u00a0__Host-sallyport", "\u0085__Host-sallyport", "__Host-sallyport\u00a0"])(
  "takes no cookie of another name for the session, which any host of the domain may set: %j",
  async (name) => {
    const { cookie = "" } = await signedIn();
    const planted = cookie.replace("__Host-sallyport", name);
    expect((await ask(gate, "/x", { headers: { cookie: planted } })).status).toBe(401);
    // Backends may trim more.
    const both = await ask(gate, "/x", { headers: { cookie: `a=b; ${planted}; ${cookie}` } });
    expect(both.status).toBe(200);
    expect(both.body).not.toContain("Host-sallyport");
  },
);

it.each(["Bearer\tx", "Basic eDp5, Bearer x", "DPoP x", "bearer"])(
  "a bearer token beside the session reaches no backend in any spelling: %j",
  async (authorization) => {
    const session = await signedIn();
    const answer = await ask(gate, "/x", { headers: { ...session, authorization } });
    if (answer.status === 200) expect(answer.body.toLowerCase()).not.toContain("bearer");
    else expect(answer.status).toBe(401);
    expect(answer.body.toLowerCase()).not.toContain("dpop x");
  },
);

it("explain knows that the own path is never forwarded", async () => {
  const url = `/-/explain?url=${encodeURIComponent("/_sallyport/other")}`;
  const { body } = await ask({ port: gate.adminPort }, url);
  expect(body).toContain("below server.ownPath");
  expect(body).not.toContain('"taken"');
});

describe("the own path", () => {
  it.each([
    ...[
      "/_sallyport",
      "/_sallyport/",
      "/_sallyport/loginx",
      "/_SALLYPORT/Login",
      "/_sallyport/login/",
    ],
    ...["/_sallyport/login;a", "/_sallyport.json", "/_sallyport%20/login", "/_sallyport,/login"],
  ])("is never forwarded: %s", async (path) => {
    const { status } = await ask(gate, path, { token: gate.token });
    expect(status).toBe(/[;]/.test(path) ? 400 : 404);
  });

  it("does not hide what only looks like it", async () => {
    expect((await ask(gate, "/_sallyports", { token: gate.token })).status).toBe(200);
  });
});

it("a page with the largest logo and several providers is one request of 12 KiB at most", async () => {
  const logo = `<svg xmlns="http://www.w3.org/2000/svg">${" ".repeat(5_060)}</svg>`;
  const providers = ["one", "two", "three"].map((name) => {
    return { name, label: `Account of ${name}`, issuer: "https://id.example.com", clientId: "x" };
  });
  const page = { title: "Orders", message: "Ask platform@example.com", logo: "logo.svg" };
  await using own = await startSallyport({
    target: backend.url,
    config: { browser: { page, providers } },
    files: { "logo.svg": logo },
  });
  const { body } = await ask(own, "/orders", { headers: NAVIGATION });
  expect(body).toContain('<img src="data:image/svg+xml;base64,');
  expect(Buffer.byteLength(body)).toBeLessThan(12 * 1_024);
  expect(body.match(/class="button"/g)).toHaveLength(3);
});
