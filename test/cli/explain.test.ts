import { beforeEach, describe, expect, it } from "vitest";
import { signingPair, signToken, startKeySetServer } from "../support/foreign-keys.ts";
import { childCommand, command } from "./command.ts";
import { type Deployment, deployment } from "./deployment.ts";

let shipped: Deployment;
let token: string;

beforeEach(async () => {
  shipped = await deployment();
  const minted = await command([
    ...["token", "mint", ...shipped.flags, "--subject", "alice", "--groups", "sales"],
  ]);
  token = minted.out.trim();
});

function explain(...args: readonly string[]) {
  return command(["explain", ...shipped.flags, ...args]);
}

const ORDERS = "https://api.example.com/api/orders/7?q=1";

describe("what would become of a request", () => {
  it("is told by a process, too: forwarded with a token, refused without", async () => {
    const args = ["explain", ...shipped.flags, "--url", ORDERS];
    const forwarded = await childCommand([...args, "--token", token]);
    expect({ code: forwarded.code, err: forwarded.err }).toEqual({ code: 0, err: "" });
    expect(forwarded.out).toMatch(/^. forwarded to orders by the route orders\n/);
    expect(forwarded.out).toContain("path      /orders/7 and its query of 4 bytes");
    expect(forwarded.out).toContain("added     X-Auth-Subject: alice");
    expect(forwarded.out).toContain("removed   Authorization");
    const refused = await command(args);
    expect({ code: refused.code, err: refused.err }).toEqual({ code: 1, err: "" });
    expect(refused.out).toMatch(/^. refused with 401: missing\n/);
  });

  it("is the same with the token in a file", async () => {
    await shipped.write("token", `${token}\n`);
    const file = `${shipped.directory}/token`;
    const { code } = await explain("--url", ORDERS, "--token-file", file);
    expect(code).toBe(0);
    expect((await explain("--url", ORDERS, "--token-file", "/none")).code).toBe(2);
    await shipped.write("empty-token", "\n");
    const empty = await explain(
      "--url",
      ORDERS,
      "--token-file",
      `${shipped.directory}/empty-token`,
    );
    expect(empty.code).toBe(2);
    expect(empty.err).toContain("the --token-file is empty");
    const both = await explain("--url", ORDERS, "--token-file", file, "--token", token);
    expect(both.code).toBe(2);
  });

  it("depends on the address that it comes from", async () => {
    const { out } = await explain(
      ...["--url", "/docs/", "--client", "192.0.2.7", "--format", "json"],
      ...[
        "--set",
        "server.trustedProxies=[192.0.2.0/24]",
        "--header",
        "X-Forwarded-For: 2001:db8::1",
      ],
    );
    expect(JSON.parse(out)).toMatchObject({
      request: { client: "2001:db8::1", peer: "192.0.2.7", peerTrusted: true },
    });
  });

  it("is told for an upgrade", async () => {
    const upgrade = ["--header", "Connection: Upgrade", "--header", "Upgrade: websocket"];
    const { code, out } = await explain("--url", "/x", "--token", token, ...upgrade);
    expect(code).toBe(0);
    expect(out).toContain("to open a WebSocket");
    const other = ["--header", "Connection: Upgrade", "--header", "Upgrade: h2c"];
    expect((await explain("--url", "/x", "--token", token, ...other)).out).toContain(
      "refused with 400: upgrade_unsupported",
    );
  });

  it("takes two Authorization fields for what they are", async () => {
    const second = ["--header", "authorization: Bearer x"];
    const { code, out } = await explain("--url", "/x", "--token", token, ...second);
    expect(code).toBe(1);
    expect(out).toContain("refused with 401: multiple");
  });

  it("says that it cannot know the key of a process that made its own", async () => {
    const flags = shipped.flags.slice(0, -2);
    await shipped.write(
      "config.yaml",
      "server: { tls: { selfSigned: true } }\nupstreams: { app: { targets: [unix:/run/app.sock] } }\n",
    );
    const config = flags.slice(0, 2);
    const { code, out } = await command(["explain", ...config, "--url", "/x", "--token", token]);
    expect(code).toBe(1);
    expect(out).toContain("unknown_key");
    expect(out).toContain("/-/explain");
  });

  it("fetches the keys of a trusted issuer, and tells when they cannot be had", async () => {
    const pair = signingPair("one");
    let keys: readonly object[] | undefined = [pair.jwk];
    await using server = await startKeySetServer(() => keys);
    const trusted = `tokens.trusted=[{issuer: us, audience: a, jwks: {url: "${server.url}"}, algorithms: [ES256]}]`;
    const exp = Math.floor(Date.now() / 1000) + 600;
    const foreign = await signToken(pair, { iss: "us", aud: "a", sub: "bob", exp });
    const args = ["--url", "/x", "--token", foreign, "--set", trusted];
    expect((await explain(...args)).out).toContain("claims to be bob, from us");
    keys = undefined;
    const { code, out } = await explain(...args);
    expect(code).toBe(1);
    expect(out).toContain("refused with 503: keys_unusable");
  });

  it("tells what was too large, and what may be", async () => {
    const large = await explain("--url", "/x", "--header", `X: ${"x".repeat(40_000)}`);
    expect(large.out).toMatch(
      /^. refused with 431: header_too_large \(40\d{3} bytes in the head, and server.limits.headerBytes is 16384\)\n/,
    );
    const fields = Array.from({ length: 150 }, (_, at) => ["--header", `X-${at}: 1`]).flat();
    const many = await explain("--url", "/x", ...fields);
    expect(many.out).toMatch(/header_too_large \(151 fields, and server.limits.headers is 100\)\n/);
  });

  it("says that there is no answer where the connection does not come about", async () => {
    const plain = await explain("--url", "http://api.example.com/docs/");
    expect(plain.out).toContain(
      "  the listener speaks TLS: a request over plain http gets no answer\n",
    );
    expect((await explain("--url", "/docs/")).out).not.toContain("plain http");
    const asking = await explain(
      ...["--url", "/docs/"],
      ...["--set", "server.tls.clientCertificates={ mode: required, caFile: ca.crt }"],
    );
    expect(asking.code).toBe(0);
    expect(asking.out).toContain("  the listener refuses connections without a client certificate");
  });

  it("names the routes whose regular expressions match, too", async () => {
    const styles = "{ name: styles, regex: '/orders/.*\\.css', auth: none, upstream: app }";
    const orders = "{ name: orders, regex: '/orders/[a-z./]+', upstream: app }";
    const routes = `routes=[${styles}, ${orders}, { name: rest, path: /, upstream: app }]`;
    const notesOn = async (url: string, ...more: readonly string[]): Promise<unknown> => {
      const { out } = await explain("--url", url, "--set", routes, "--format", "json", ...more);
      return JSON.parse(out).notes;
    };
    expect(await notesOn("https://api.example.com/orders/site.css")).toEqual([
      "the regex of the route orders matches, too: styles comes before it, and may admit callers whom orders refuses",
    ]);
    expect(await notesOn("https://api.example.com/orders/SITE.css")).toEqual([]);
    expect(await notesOn("https://api.example.com/orders/site")).toEqual([]);
    expect(await notesOn("https://api.example.com/other")).toEqual([]);
    expect(await notesOn("https://api.example.com/orders/../site.css")).toEqual([]);
    const first = routes.replace(styles, "{ name: exact, exact: /orders/site.css, upstream: app }");
    expect(await notesOn("https://api.example.com/orders/site.css", "--set", first)).toEqual([
      "the regex of the route orders matches, too: exact comes before it",
    ]);
  });

  it("says what a login depends on", async () => {
    const login = ["--method", "POST", "--url", "/api/authenticate"];
    const bare = await explain(...login);
    expect(bare.code).toBe(1);
    expect(bare.out).toMatch(/^. refused with 415: login_media_type/);
    const json = ["--header", "Content-Type: application/json"];
    const sent = await explain(...login, ...json, "--header", "Content-Length: 40");
    expect(sent.code).toBe(0);
    expect(sent.out).toContain("  the result depends on the name and password in the body");
    const large = await explain(...login, ...json, "--header", "Content-Length: 20000");
    expect(large.out).toMatch(/^. refused with 413: login_too_large/);
  });

  it("repeats no secret of the configuration", async () => {
    const set = [
      ...["--set", "tokens.issuer=https://a:hunter2@id.example.com/"],
      ...["--set", "tokens.audience=https://a:hunter2@api.example.com/"],
    ];
    const issuer = await explain("--url", "/x", "--token", token, ...set);
    expect(issuer.out).toContain("id.example.com");
    const audience = await explain("--url", "/x", "--token", token, ...set.slice(2));
    expect(audience.out).toContain("must be for https://");
    expect(issuer.out + audience.out).not.toContain("hunter2");
  });

  it("says that a token was pasted with a line break, in one line", async () => {
    const broken = `${token.slice(0, 40)}\n${token.slice(40)}`;
    await shipped.write("token", broken);
    const file = `${shipped.directory}/token`;
    for (const flags of [
      ["--token", broken],
      ["--token-file", file],
    ]) {
      const { code, err } = await explain("--url", "/", ...flags);
      expect(code).toBe(2);
      expect(err).toBe(
        "sallyport explain: the token contains a line break: put it on one line\nsee sallyport explain --help\n",
      );
    }
    const inspected = await command(["token", "inspect", ...shipped.flags], {}, broken);
    expect(inspected.code).toBe(2);
    expect(inspected.err).toContain("the token contains a line break");
  });

  it("holds nothing that steers a terminal", async () => {
    const { out } = await explain("--url", "/docs/%1b[2J", "--header", "X-A: \u0085");
    expect(out).not.toMatch(/[^\P{C}\n]/u);
  });

  it("is marked by signs in UTF-8, and in ASCII elsewhere", async () => {
    const args = ["explain", ...shipped.flags, "--url", "/docs/"];
    expect((await command(args, { LANG: "en_US.UTF-8" })).out).toMatch(/^✓ /);
    expect((await command(args, { LANG: "C" })).out).toMatch(/^\+ /);
    expect((await command(args, { LANG: "C.utf8", NO_COLOR: "1" })).out).toMatch(/^\+ /);
  });
});

it.each([
  [[]],
  [["--url", "ftp://x/"]],
  [["--url", "/a b"]],
  [["--url", "/", "--method", "FETCH"]],
  [["--url", "/", "--header", "nothing"]],
  [["--url", "/", "--header", "A: 1\r\nB: 2"]],
  [["--url", "/", "--client", "me"]],
  [["--url", "/", "--format", "xml"]],
])("%j is wrong usage", async (args) => {
  const { code, out } = await explain(...args);
  expect({ code, out }).toEqual({ code: 2, out: "" });
});

it("a broken configuration is told as one", async () => {
  await shipped.write("config.yaml", "routes: 1\n");
  expect((await explain("--url", "/")).code).toBe(78);
});
