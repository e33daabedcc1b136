/**
 * People with Debian's Chromium, who sign in at a real OpenID provider (`oidc-provider`), through nginx and two replicas that
 * share keys and Redis: each request may meet another replica.
 */
import { generateKeyPairSync } from "node:crypto";
import { chmod } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { Provider } from "oidc-provider";
import { Agent, fetch as fetchThrough } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keysCommand } from "../cli/command.ts";
import { testCertificates } from "../support/certificates.ts";
import { freePort } from "../support/dead-ends.ts";
import { listening } from "../support/listening.ts";
import { missing, startProgram } from "../support/program.ts";
import { type LogLine, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { startWebSocketBackend } from "../support/websocket.ts";
import { type Browser, startBrowser, type Tab } from "./browser.ts";
import { arrivedAt, click, openSocket, signIn, socketClosed, textOf } from "./person.ts";
import { redisMissing, startRedis } from "./redis-server.ts";

const reason = missing("chromium", "nginx") ?? redisMissing;
const HOST = "app.example.com";
const CLIENT = { id: "sallyport", secret: "a-secret-of-the-test" };
const OWN = "/_sallyport/login";

/** Creates the provider: any name may sign in with any password. Its back channel finds the host without DNS. */
function providerAt(issuer: string, app: string, ca: string): Provider {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const dispatcher = new Agent({
    connect: {
      ca,
      servername: "localhost",
      lookup: (_host, _options, done) => done(null, [{ address: "127.0.0.1", family: 4 }]),
    },
  });
  return new Provider(issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kty: "EC", alg: "ES256" }] },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [`${app}${OWN}/company/callback`],
        post_logout_redirect_uris: [`${app}${OWN}`],
        backchannel_logout_uri: `${app}${OWN}/company/backchannel`,
        backchannel_logout_session_required: true,
      },
    ],
    clientDefaults: { id_token_signed_response_alg: "ES256" },
    claims: { openid: ["sub", "groups"], email: ["email", "email_verified"], profile: ["name"] },
    cookies: { keys: ["of the test"] },
    features: { backchannelLogout: { enabled: true }, devInteractions: { enabled: true } },
    findAccount: (_context, sub) => ({
      accountId: sub,
      claims: () => ({
        sub,
        email: `${sub}@example.com`,
        email_verified: true,
        groups: sub === "guest" ? ["guests"] : ["staff"],
      }),
    }),
    fetch: async (url, options) => {
      const { method = "GET", headers, body } = options ?? {};
      const sent = { method, headers: Object.fromEntries(new Headers(headers)), dispatcher };
      const answer = await fetchThrough(
        url,
        body instanceof URLSearchParams ? { ...sent, body: body.toString() } : sent,
      );
      return new Response(await answer.text(), { status: answer.status });
    },
  });
}

/**
 * Each request goes to the next replica, except for those whose replica a test is about: what begins at the first ends at the
 * second.
 */
function nginxConfiguration(directory: string, port: number, gates: readonly Sallyport[]): string {
  const [first, second] = gates.map((each) => each.port);
  return `
daemon off;
worker_processes 1;
pid ${directory}/nginx.pid;
error_log stderr crit;
events { worker_connections 128; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream either { server 127.0.0.1:${first}; server 127.0.0.1:${second}; }
  upstream first { server 127.0.0.1:${first}; }
  upstream second { server 127.0.0.1:${second}; }
  map $uri $replica {
    default either;
    ${OWN}/company first;
    ${OWN}/company/callback second;
    ${OWN}/company/backchannel first;
    /chat/first first;
    /chat/second second;
  }
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${directory}/tls.crt;
    ssl_certificate_key ${directory}/tls.key;
    location / {
      proxy_pass http://$replica;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
    }
  }
}
`;
}

describe.skipIf(reason !== undefined)(`two replicas and oidc-provider ${reason ?? ""}`, () => {
  const stack = new AsyncDisposableStack();
  let app: string;
  let issuer: string;
  let gates: readonly Sallyport[];
  /** What went wrong at the provider. */
  const failures: string[] = [];
  beforeAll(async () => {
    const { ca, server } = await testCertificates();
    const directory = stack.use(await temporaryDirectory());
    // When started by root, nginx runs as another user.
    await chmod(directory.path, 0o755);
    await directory.write("tls.crt", server.cert);
    await directory.write("tls.key", server.key);
    const keys = join(directory.path, "keys");
    await keysCommand("generate", "-d", keys);
    const backend = stack.use(await startWebSocketBackend());
    const redis = stack.use(await startRedis());
    const port = await freePort();
    app = `https://${HOST}:${port}`;
    const front = stack.use(
      await listening(
        createServer((request, response) => {
          answer(request, response).catch(() => response.destroy());
        }),
      ),
    );
    issuer = front.url;
    const provider = providerAt(issuer, app, ca);
    const answer = provider.callback();
    provider.on("backchannel.error", (_context, error) => failures.push(error.message));
    provider.on("server_error", (_context, error) => failures.push(error.message));
    const config = {
      server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
      browser: {
        providers: [
          {
            name: "company",
            label: "Company account",
            issuer,
            clientId: CLIENT.id,
            clientSecret: CLIENT.secret,
            claims: { subject: "email" },
            require: { groups: { any: ["staff"] } },
            logout: "provider",
          },
        ],
      },
      shared: { kind: "redis", url: redis.url },
      tokens: { keys },
    };
    const start = () => startSallyport({ target: backend.url, config, withoutToken: true });
    gates = await Promise.all([start(), start()]);
    for (const gate of gates) stack.use(gate);
    const file = await directory.write(
      "nginx.conf",
      nginxConfiguration(directory.path, port, gates),
    );
    const nginx = stack.use(startProgram("nginx", ["-p", directory.path, "-c", file]));
    await until(async () => {
      if (nginx.exited()) throw new Error(nginx.output());
      return fetch(`http://127.0.0.1:${port}`).then(Boolean, () => false);
    });
  });
  afterAll(() => stack.disposeAsync());

  /** Only this machine can be reached, and the host of the application is this machine. */
  const start = (): Promise<Browser> =>
    startBrowser(
      "--ignore-certificate-errors",
      `--host-resolver-rules=MAP ${HOST} 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1`,
    );

  /** From a page of the application through the provider's own pages, and back. */
  async function signInThere(tab: Tab, path: string, name: string): Promise<void> {
    await tab.open(`${app}${path}`);
    await click(tab, 'a[href*="/login/company"]');
    await signIn(tab, name, "any");
    // The provider asks whether the application may know who signs in.
    if (String(await tab.evaluate("location.href")).startsWith(issuer)) {
      await click(tab, "button[type=submit]");
    }
  }

  const lines = (): readonly (readonly LogLine[])[] => gates.map((gate) => gate.log());
  /** Which replicas have served a path. */
  const served = (path: string): readonly boolean[] =>
    lines().map((log) => log.some((line) => line["path"] === path));

  it("a sign-in that begins at one replica ends at another, and the session is good at both", async () => {
    await using browser = await start();
    await signInThere(browser, "/orders/17?view=all", "ann");
    expect(await browser.evaluate("location.href")).toBe(`${app}/orders/17?view=all`);
    const session = await browser.evaluate(`(async () => {
      const ask = async () => (await (await fetch("/_sallyport/session")).json()).username;
      return JSON.stringify(await Promise.all([ask(), ask(), ask(), ask()]));
    })()`);
    expect(new Set(JSON.parse(String(session)))).toEqual(new Set(["ann@example.com"]));
    await until(() => served("/_sallyport/session").every(Boolean));
    expect(served(`${OWN}/company`)).toEqual([true, false]);
    expect(served(`${OWN}/company/callback`)).toEqual([false, true]);
  });

  it("a sign-out at the provider ends the session and its WebSockets at both replicas", async () => {
    await using browser = await start();
    await signInThere(browser, "/", "ben");
    expect(await openSocket(browser, "/chat/first", "first")).toBe(true);
    expect(await openSocket(browser, "/chat/second", "second")).toBe(true);
    const other = await browser.tab();
    await other.open(`${issuer}/session/end`);
    const began = Date.now();
    await click(other, "button[value=yes]");
    expect(failures).toEqual([]);
    for (const name of ["first", "second"]) {
      expect((await socketClosed(browser, name)) - began).toBeLessThan(1_000);
    }
    await browser.open(`${app}/`);
    expect(await textOf(browser)).toContain("Your session has ended");
    // The provider has told the first replica alone.
    await until(() => served("/chat/second")[1] === true);
    expect(served(`${OWN}/company/backchannel`)).toEqual([true, false]);
    expect(served("/chat/second")).toEqual([false, true]);
  });

  it("a sign-out here leads to the provider's, and back to the page", async () => {
    await using browser = await start();
    await signInThere(browser, "/", "eve");
    await browser.evaluate(`document.body.innerHTML =
      '<form method="post" action="/_sallyport/logout"><button>Sign out</button></form>'`);
    await click(browser, "button");
    expect(await browser.evaluate("location.href")).toContain(`${issuer}/session/end`);
    await click(browser, "button[value=yes]");
    await arrivedAt(browser, new RegExp(`^${app}${OWN}$`));
    // The provider asks for the password again.
    await browser.open(`${app}/`);
    await click(browser, 'a[href*="/login/company"]');
    expect(await browser.evaluate("document.querySelectorAll('[type=password]').length")).toBe(1);
  });

  it("somebody who may not sign in reads why, and can try again", async () => {
    await using browser = await start();
    await signInThere(browser, "/", "guest");
    expect(await textOf(browser)).toContain("Your account may not sign in here");
    expect((await browser.cookies()).map(({ name }) => name)).not.toContain("__Host-sallyport");
  });
});
