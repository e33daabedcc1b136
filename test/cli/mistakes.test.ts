/** Mistakes that people make: each message says what is wrong, where, and what to do about it. */
import { mkdir, writeFile } from "node:fs/promises";
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createDevelopmentCertificate } from "../../src/server/tls/development-certificate.ts";
import { SMALLEST } from "../config/configuration-file.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { command } from "./command.ts";

const server = (text: string): string => SMALLEST.replace("tls: off", `tls: off, ${text}`);
const tls = (text: string): string => SMALLEST.replace("tls: off", `tls: ${text}`);
const route = (text: string): string =>
  `${SMALLEST}routes: [{ name: r, upstream: app, ${text} }]\n`;
const target = (text: string): string => SMALLEST.replace("http://127.0.0.1:8080", text);
const users = (text: string): string => `${SMALLEST}users: ${text}\n`;
const trusted = (text: string): string =>
  `${SMALLEST}tokens: { trusted: [{ issuer: "https://id.example.com", audience: a, ${text} }] }\n`;

/** A configuration, where in it the mistake is, and what is said about it. */
type Row = readonly [configuration: string, place: string, ...said: readonly string[]];

const CONFIGURATIONS: Readonly<Record<string, Row>> = {
  "a tab": ["server:\n\ttls: off\n", "2:1", "a tab cannot indent a line; use spaces"],
  "a line too deep": [
    "server:\n  tls: off\n   http2: true\n",
    "3:4",
    "indented deeper than line 2",
  ],
  "a key twice": [`${SMALLEST}server: {}\n`, "3:1", "appears twice, first in line 1"],
  "an empty file": ["", "", "the file is empty", "make one with sallyport init"],
  "a list": ["- a\n", "1:1", "write sections such as `server:` and `upstreams:`"],
  "another file": ["hello\n", "1:1", "is it the right file?"],
  "a misspelt section": [`${SMALLEST}toknes: {}\n`, "3:1", "did you mean tokens?"],
  "snake case": [server("trusted_proxies: []"), "1:21", "did you mean trustedProxies?"],
  "nothing after a key": [`${SMALLEST}tokens:\n`, "3:8", "give it a value or leave it out"],
  "no server": [SMALLEST.split("\n")[1] ?? "", "1:1", "server.tls has no default: give { certFile"],
  "an unset variable": [server('listen: "${NO_SUCH}"'), "1:29", "environment variable NO_SUCH"],
  "a truth in words": [server("http2: yes"), "1:28", "must be true or false", "write true"],
  "a falsehood in words": [server("http2: off"), "1:28", "must be true or false", "write false"],
  "a colon and a port": [server('listen: ":8450"'), "1:29", "did you mean 0.0.0.0:8450?"],
  "a port as text": [server('listen: "8450"'), "1:29", "did you mean 0.0.0.0:8450?"],
  "a port": [server("listen: 8450"), "1:29", "did you mean 0.0.0.0:8450?"],
  "any interface as a star": [server('listen: "*:8450"'), "1:29", "did you mean 0.0.0.0:8450?"],
  "a URL to listen on": [server("listen: http://h:80"), "1:29", "did you mean h:80?"],
  "a port of the admin listener": [
    `${SMALLEST}admin: { listen: 9465 }\n`,
    "3:18",
    "did you mean 127.0.0.1:9465, or 0.0.0.0:9465 for other machines, too?",
  ],
  "one port twice": [server('listen: "127.0.0.1:9464"'), "1:1", "choose another"],
  "bind instead of listen": [server("bind: a"), "1:21", "did you mean listen?"],
  "a time without a unit": [`${SMALLEST}tokens: { lifetime: 30 }\n`, "3:21", "as in 30s"],
  "minutes spelt out": [`${SMALLEST}tokens: { lifetime: 5min }\n`, "3:21", "did you mean 5m?"],
  "a time with a blank": [`${SMALLEST}tokens: { lifetime: 5 hours }\n`, "3:21", "did you mean 5h?"],
  "milliseconds spelt out": [
    server("timeouts: { header: 500msec }"),
    "1:41",
    "did you mean 500ms?",
  ],
  days: [`${SMALLEST}tokens: { lifetime: 2d }\n`, "3:21", "write 48h: the longest unit is h"],
  "a size without a unit": [server("limits: { bodyBytes: 10 }"), "1:42", "as in 16KiB"],
  "a decimal size": [server("limits: { bodyBytes: 10MB }"), "1:42", "did you mean 10MiB?"],
  "a short size": [server("limits: { bodyBytes: 8k }"), "1:42", "did you mean 8KiB?"],
  "a range": [
    route("rateLimit: { requests: 5, within: 500ms }"),
    "3:70",
    "must be from 1s to 24 days (576h)",
  ],
  "no certificate": [
    tls("{ certFile: none.crt, keyFile: b.key }"),
    "1:28",
    "a file that does not exist",
    "make one with sallyport init, or openssl",
  ],
  "cert and key": [tls("{ cert: a, key: b }"), "1:18", "did you mean certFile?", "keyFile?"],
  "a pair that does not match": [
    tls("{ certFile: a.crt, keyFile: b.key }"),
    "1:44: server.tls.keyFile",
    "b.key: is not the key of ",
  ],
  "no certificate in its file": [
    tls("{ certFile: users-list.yaml, keyFile: b.key }"),
    "1:28: server.tls.certFile",
    "users-list.yaml: holds no PEM certificate",
  ],
  "no directory of keys": [
    `${SMALLEST}tokens: { keys: none }\n`,
    "3:17",
    "make one with sallyport keys generate --directory ",
  ],
  "an empty directory of keys": [
    `${SMALLEST}tokens: { keys: empty }\n`,
    "3:17: tokens.keys",
    "make one with sallyport keys generate",
  ],
  "a target without a scheme": [
    target("127.0.0.1:8080"),
    "2:31",
    "did you mean http://127.0.0.1:8080?",
  ],
  "a target with a path": [target("http://h/api"), "2:31", "leave the path out"],
  "a target that is not in a list": [
    SMALLEST.replace(/\[(.*)\]/, "$1"),
    "2:30",
    "put it in brackets: [ ]",
  ],
  "an upstream as a URL": [
    SMALLEST.replace(/\{ targets: \[(.*)\] \}/, "$1"),
    "2:19",
    "write { targets: [URL] }",
  ],
  "upstreams as a list": [
    SMALLEST.replace(/\{ app: (.*) \}/, "[$1]"),
    "2:12",
    "write { NAME: { targets: [URL] } }",
  ],
  "url instead of targets": [SMALLEST.replace("targets:", "url:"), "2:21", "did you mean targets?"],
  "a target that is Sallyport": [target("http://127.0.0.1:8443"), "2:31", "name the backend"],
  "routes as a mapping": [`${SMALLEST}routes: { r: {} }\n`, "3:9", "write `- ` before each entry"],
  "backend instead of upstream": [
    `${SMALLEST}routes: [{ name: r, backend: app }]\n`,
    "3:21",
    "did you mean upstream?",
  ],
  "a misspelt upstream": [
    `${SMALLEST}routes: [{ name: r, upstream: ap }]\n`,
    "3:31",
    "did you mean app?",
  ],
  "a pattern": [route("path: /api/*"), "3:42", "a path is a prefix already: write /api/"],
  "a regular expression": [route("path: ^/api"), "3:42", "a path is a prefix already: write /api;"],
  "auth: false": [route("auth: false"), "3:42", "write none"],
  "auth: no": [route("auth: no"), "3:42", "write none"],
  "auth: true": [route("auth: true"), "3:42", "write required"],
  "a misspelt auth": [route("auth: requird"), "3:42", "did you mean required?"],
  "a rate": [route("rateLimit: 5/s"), "3:47", "write { requests: 5, within: 1s }"],
  "a rate by the minute": [
    route("rateLimit: 100 per minute"),
    "3:47",
    "write { requests: 100, within: 1m }",
  ],
  "a rate without a time": [route("rateLimit: 5"), "3:47", "write { requests: 5, within: 1s }"],
  "one method": [route("methods: get"), "3:45", "write [GET]"],
  "a method in lower case": [route("methods: [get]"), "3:46", "did you mean GET?"],
  "groups as a list": [route("require: { groups: [admin] }"), "3:55", "write { any: [admin] }"],
  "roles instead of groups": [route("require: { roles: [a] }"), "3:47", "did you mean groups?"],
  "a network that is not in a list": [
    route("allow: 10.0.0.0/8"),
    "3:43",
    "put it in brackets: [ ]",
  ],
  "two routes for the same requests": [
    `${SMALLEST}routes: [{ name: a, path: /x, upstream: app }, { name: b, path: /x, upstream: app }]\n`,
    "3:48",
    "routes[1] (b) answers the same requests as routes[0] (a)",
  ],
  "users as a mapping": [users("{ kind: file, path: u }"), "3:8", "write `- ` before each entry"],
  "users as a file": [users("users.yaml"), "3:8", "put it in brackets: [ ]"],
  "type instead of kind": [
    users("[{ type: file, path: u }]"),
    "3:11",
    "type is not a known key",
    "did you mean kind?",
  ],
  "a provider under users": [
    users("[{ kind: oidc, issuer: a }]"),
    "3:17",
    "write the issuer of an OpenID provider into tokens.trusted",
  ],
  "users in a list": [
    users("[{ kind: file, path: users-list.yaml }]"),
    "users-list.yaml:2:3",
    "write NAME: { … } instead of each `- `",
  ],
  "a file of passwords": [
    users("[{ kind: file, path: htpasswd }]"),
    "htpasswd:1:1",
    "use kind: htpasswd",
  ],
  "a large file of users": [
    users("[{ kind: file, path: huge.yaml }]"),
    "3:29: users[0].path",
    "larger than 8MiB: is it the right file?",
  ],
  "a shared secret of an issuer": [
    trusted("discovery: true, algorithms: [HS256]"),
    "3:100",
    "shared secrets are not accepted from an issuer",
  ],
  "a level of another log": [`${SMALLEST}log: { level: warning }\n`, "3:15", "write warn"],
};

/** A valid configuration with a mistake that `check` warns of. */
const WARNINGS: Readonly<Record<string, readonly [configuration: string, ...said: string[]]>> = {
  "a route that another one hides": [
    `${SMALLEST}routes: [{ name: a, hosts: [h], upstream: app }, { name: b, path: /b, upstream: app }]\n`,
    "b: never matches for h, where a comes first",
    "name the host in its hosts, too",
  ],
  "two issuers that differ by a slash": [
    `${SMALLEST}tokens: { trusted: [${["", "/"].map((slash) => `{ issuer: "https://id.example.com${slash}", audience: a, algorithms: [ES256], discovery: true }`).join(", ")}] }\n`,
    "https://id.example.com and https://id.example.com/ are two issuers",
    "write the one of the discovery document",
  ],
  "an expired certificate": [
    tls("{ certFile: old.crt, keyFile: old.key }"),
    "the certificate expired on 20",
    "renew it: clients refuse it",
  ],
};

/** Arguments, and what is said about them. */
const LINES: readonly (readonly [line: string, said: string])[] = [
  ["serv", "did you mean serve?"],
  ["run", "did you mean serve?"],
  ["stop", "did you mean drain?"],
  ["validate", "did you mean check?"],
  ["rotate", "did you mean keys rotate?"],
  ["help rotate", "did you mean keys rotate?"],
  ["help mint", "did you mean token mint?"],
  ["token", "sallyport token: needs inspect, mint or revoke\n"],
  ["token inspekt", "needs inspect, mint or revoke, not inspekt; did you mean inspect?"],
  ["keys", "sallyport keys: needs generate, list, rotate or retire\n"],
  ["keys rotat", "did you mean rotate?"],
  ["doctor base.yaml", "did you mean --config base.yaml?"],
  ["check a.yaml --config b.yaml", "Unexpected argument 'a.yaml'"],
  ["check -o json", "Unknown option '-o'; did you mean --format?"],
  ["check --confg a", "did you mean --config?"],
  ["explain", "needs a URL, such as /orders"],
  ["top --format json", "--format json needs --once"],
];

describe("a configuration", () => {
  let directory: string;
  beforeAll(async () => {
    const temporary = await temporaryDirectory();
    directory = temporary.path;
    const write = (name: string, content: string): Promise<void> =>
      writeFile(join(directory, name), content, { mode: 0o600 });
    const { cert, key } = await createDevelopmentCertificate(["localhost"], 90);
    const old = await createDevelopmentCertificate(["localhost"], -1);
    const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
    await write("a.crt", cert);
    await write("a.key", key);
    await write("old.crt", old.cert);
    await write("old.key", old.key);
    await write("b.key", other.export({ format: "pem", type: "pkcs8" }));
    await write("users-list.yaml", "users:\n  - name: alice\n");
    await write("htpasswd", "alice:$apr1$abc$x\n");
    await write("huge.yaml", "#".repeat(8_388_609));
    await mkdir(join(directory, "empty"));
    return () => temporary.close();
  });

  async function checked(configuration: string) {
    const file = join(directory, "config.yaml");
    await writeFile(file, configuration);
    const { code, out, err } = await command(["check", file]);
    return { code, said: `${out}${err}`.replaceAll(`${directory}/`, "") };
  }

  it.each(Object.entries(CONFIGURATIONS))(
    "with %s",
    async (_, [configuration, place, ...texts]) => {
      const { code, said } = await checked(configuration);
      expect(code).toBe(78);
      for (const text of texts) expect(said).toContain(text);
      expect(said).toContain(
        place.includes(".yaml") || place.startsWith("htp") ? place : `config.yaml:${place}`,
      );
      expect(said).not.toContain("docs/");
    },
  );

  it.each(Object.entries(WARNINGS))("with %s", async (_, [configuration, ...texts]) => {
    const { code, said } = await checked(configuration);
    expect(code).toBe(0);
    for (const text of texts) expect(said).toContain(text);
  });

  it("with a key of another program has one problem, not two", async () => {
    const { said } = await checked(`${SMALLEST}routes: [{ name: r, backend: app }]\n`);
    expect(said).not.toContain("is missing");
  });
});

it.each(LINES)("sallyport %s", async (line, text) => {
  const { code, err } = await command(line.split(" "));
  expect(code).toBe(2);
  expect(err).toContain(text);
});

it("a word is the file to check, and the request to explain", async () => {
  const temporary = await temporaryDirectory();
  onTestFinished(() => temporary.close());
  const file = await temporary.write("base.yaml", SMALLEST);
  expect((await command(["check", file])).out).toContain("base.yaml is valid.");
  const explained = await command(["explain", "/orders", "--config", file]);
  expect(explained.out).toContain("GET /orders");
});
