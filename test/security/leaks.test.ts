/**
 * Secrets in output. Every part that handles a password, a token or a key also reports errors, and the quickest way
 * to report one is to quote its subject: a users file that cannot be parsed, a key that cannot be read, a refused
 * header, an upstream with a password in its address. So a deployment is filled with marked secrets and driven
 * through everything that works and everything that fails, at the level `debug`. Then all output is searched: log,
 * standard error, metrics, every answer, and the output of `check`.
 */
import { createPrivateKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseDocument } from "yaml";
import { childCommand, command } from "../cli/command.ts";
import { testCertificates } from "../support/certificates.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { leaksIn } from "../support/leaks.ts";
import { startNaiveProxy } from "../support/naive.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { ALICE, cheapHash, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const marked = (name: string): string => `${name}-${randomBytes(9).toString("hex")}`;
/** Each secret once, distinguishable by name. */
const SECRETS = {
  password: marked("correct-password"),
  "wrong password": marked("wrong-password"),
  "shared secret": randomBytes(48).toString("base64url"),
  "query secret": marked("query"),
  cookie: marked("cookie"),
  "another token": marked("opaque-token"),
  "basic credentials": Buffer.from(`alice:${marked("basic")}`).toString("base64"),
  "body secret": marked("body"),
  "upstream password": marked("upstream"),
  "environment secret": marked("environment"),
  passphrase: marked("passphrase"),
};
const hash = cheapHash(SECRETS.password);
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const pem = privateKey.export({ format: "pem", type: "pkcs8" });
const KEYS = {
  "hash's salt": hash.split("$").at(-2) ?? "",
  "hash's tag": hash.split("$").at(-1) ?? "",
  "private key": pem.split("\n")[1] ?? "",
  "private number": privateKey.export({ format: "jwk" }).d ?? "",
};
const users = (password: string): string =>
  `users:\n  bob: { password: "${password}", groups: [sales] }\n  ${ALICE.username}: { password: "${cheapHash(ALICE.password)}" }\n`;

it("no output or answer of a running proxy contains a secret", { timeout: 40_000 }, async () => {
  await using backend = await startRawBackend(({ startLine }) =>
    startLine.includes("/die")
      ? { write: `HTTP/1.1 200 ${SECRETS["body secret"]}\0\r\n\r\n`, then: "reset" }
      : { write: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" },
  );
  await using keys = await temporaryDirectory();
  await keys.write("signing.pem", pem);
  const secret = { kty: "oct", k: SECRETS["shared secret"], alg: "HS256" };
  await keys.write("secret.json", JSON.stringify(secret));
  await using gate = await startSallyport({
    target: backend.url,
    files: { "users.yaml": users(hash) },
    config: {
      log: { level: "debug" },
      tokens: { keys: keys.path },
      upstreams: { nowhere: { targets: ["http://127.0.0.1:1"] } },
      routes: [
        { name: "public", path: "/public/", auth: "none", upstream: "app" },
        { name: "nowhere", path: "/nowhere/", auth: "none", upstream: "nowhere" },
        { name: "everything", path: "/", upstream: "app" },
      ],
    },
    env: { PLANTED: SECRETS["environment secret"] },
  });
  const token = await gate.login("bob", SECRETS.password);
  const secrets = { ...SECRETS, ...KEYS, token, "alice's token": gate.token };
  const answers: string[] = [];
  const send = async (bytes: string): Promise<void> => {
    answers.push((await exchange(gate, bytes, { responses: Infinity, timeoutMs: 2_000 })).raw);
  };
  await Promise.all([...traffic(token)].map(send));

  // The users file becomes invalid while it is watched.
  const broken = `users: { bob: { password: ${SECRETS.passphrase}, groups: "${hash}" } }\n`;
  await writeFile(join(gate.directory, "users.yaml"), broken);
  await until(() => gate.log().some(({ problems }) => problems !== undefined), 15_000);

  const admin = { port: gate.adminPort };
  for (const path of ["/metrics", "/readyz?verbose", `/x?${SECRETS["query secret"]}`]) {
    const asked = request([`GET ${path} HTTP/1.1`, "Host: a", "Connection: close"]);
    answers.push((await exchange(admin, asked, { responses: Infinity })).raw);
  }
  answers.push((await scrape(gate)).text);
  expect(await gate.stop()).toBe(0);

  const written =
    gate
      .log()
      .map((line) => JSON.stringify(line))
      .join("\n") + gate.stderr();
  expect(gate.log().length).toBeGreaterThan(answers.length);
  expect(leaksIn(written, secrets)).toEqual([]);
  expect(leaksIn(answers.join("\n"), secrets)).toEqual([]);
});

/** Requests that are served, refused and invalid, each with every secret of a client. */
function* traffic(token: string): Generator<string> {
  const bearers = [
    `Authorization: Bearer ${token}`,
    `Authorization: Bearer ${token.slice(0, -6)}AAAAAA`,
    `Authorization: Bearer ${SECRETS["another token"]}`,
    `Authorization: Basic ${SECRETS["basic credentials"]}`,
    `Authorization: ${SECRETS["another token"]}`,
    `Proxy-Authorization: Bearer ${token}`,
  ];
  const query = `?key=${SECRETS["query secret"]}&access_token=${token}`;
  const targets = [
    ...[`/orders${query}`, `/public/x${query}`, `/nowhere/x${query}`, `/public/die${query}`],
    ...[`/public/../x${query}`, `/%zz${query}`, `http://u:${SECRETS["query secret"]}@b/${query}`],
    ...[`/api/version${query}`, `/api/authenticate${query}`, `/x#${SECRETS["query secret"]}`],
  ];
  const cookie = `Cookie: session=${SECRETS.cookie}; jwt=${token}`;
  for (const target of targets) {
    for (const bearer of target.startsWith("/orders") ? bearers : bearers.slice(0, 2)) {
      const lines = [`GET ${target} HTTP/1.1`, "Host: localhost", bearer, cookie];
      yield request([...lines, "Connection: close"]);
    }
  }
  const get = (...more: string[]): string =>
    request([`GET /orders${query} HTTP/1.1`, "Host: localhost", cookie, ...more]);
  yield get(bearers[0] ?? "", bearers[0] ?? "", "Connection: close");
  yield get(`X-Request-Id: ${SECRETS.cookie}!`, "Connection: close");
  yield get(`Upgrade: ${SECRETS.cookie}`, "Connection: upgrade");
  yield get(`Expect: ${SECRETS.cookie}`);
  yield get(SECRETS.cookie);
  yield get(`Big: ${SECRETS.cookie.repeat(2_000)}`);
  yield get("Content-Length: 1", "Content-Length: 2");
  yield `${SECRETS.cookie} ${SECRETS["query secret"]}\r\n\r\n`;
  const logins = [
    { username: "bob", password: SECRETS["wrong password"] },
    { username: SECRETS["wrong password"], password: SECRETS["wrong password"] },
    { username: "bob", password: [SECRETS["wrong password"]] },
    { username: "bob", [SECRETS["wrong password"]]: 1 },
  ].map((each) => JSON.stringify(each));
  for (const body of [...logins, `{"username":"bob","password":"${SECRETS.password}`]) {
    yield request(
      [
        ...[`POST /api/authenticate${query} HTTP/1.1`, "Host: localhost", cookie],
        ...[
          "Content-Type: application/json",
          `Content-Length: ${body.length}`,
          "Connection: close",
        ],
      ],
      body,
    );
  }
}

it("no report about a broken deployment contains a secret", { timeout: 40_000 }, async () => {
  await using directory = await temporaryDirectory();
  const encrypted = createPrivateKey(pem).export({
    format: "pem",
    type: "pkcs8",
    cipher: "aes-256-cbc",
    passphrase: SECRETS.passphrase,
  });
  const secret = SECRETS["shared secret"];
  const files: Record<string, string | Buffer> = {
    "users.yaml": `users:\n  bob: { password: ${SECRETS.password} }\n  eve: { password: "${hash}", groups: ${SECRETS.cookie}, x: 1 }\n`,
    "users2.yaml": `users: [ "${hash}"\n`,
    "users3.yaml": `users: { bob: { password: "${hash}", ${SECRETS.passphrase}: 1 } }\n`,
    "users4.yaml": `users: { bob: { password: "${hash.slice(0, -4)}" } }\n`,
    "tls.crt": pem,
    "server.crt": (await testCertificates()).server.cert,
    "tls.key": encrypted,
    "clients.crt": `${pem}${SECRETS["body secret"]}`,
    "keys-one": `{"kty":"oct","k":"${secret}","k":"${secret}"}`,
    "upstream.key": pem.replace("-----END", `${SECRETS["body secret"]}\n-----END`),
  };
  for (const [name, content] of Object.entries(files)) await directory.write(name, content);
  const configurations = [
    // The files that it names.
    `server: { tls: { certFile: tls.crt, keyFile: tls.key, clientCertificates: { mode: required, caFile: clients.crt } } }
users: [${["users", "users2", "users3", "users4"].map((name) => `{ kind: file, path: ${name}.yaml }`).join(", ")}]
tokens: { keys: . }
upstreams: { app: { targets: ["https://h"], tls: { certFile: server.crt, keyFile: upstream.key } } }
`,
    // What it says itself: a password in an address, secrets where other things belong.
    `server: { tls: off, password: ${SECRETS.password} }
tokens: { issuer: "\${PLANTED}", lifetime: "\${PLANTED}", secret: ${secret}, trusted: [{ issuer: a, jwks: { url: "https://u:${SECRETS["upstream password"]}@h" } }] }
upstreams:
  app: { targets: ["http://u:${SECRETS["upstream password"]}@127.0.0.1:1", "http://h/?key=${SECRETS["query secret"]}"], token: ${SECRETS["another token"]} }
routes: [{ name: "\${PLANTED}", upstream: "\${file:keys-one}" }]
`,
    `server: { tls: off }\nupstreams: { app: { targets: [http://u:${SECRETS["upstream password"]}@h ] }\n`,
    `server: { tls: { selfSigned: "\${PLANTED}" } }\n`,
  ];
  for (const [turn, text] of configurations.entries()) {
    const flags = ["--config", await directory.write(`config-${turn}.yaml`, text)];
    const listen = { SALLYPORT_SERVER__LISTEN: SECRETS["basic credentials"] };
    const env = { PLANTED: SECRETS["environment secret"], ...(turn > 0 && listen) };
    const ended = [
      await command(["check", ...flags], env),
      await command(["check", "--format", "json", ...flags], env),
      await command(["serve", ...flags], env),
      ...(turn === 0 ? [await childCommand(["serve", ...flags], { env })] : []),
    ];
    for (const { code, out, err } of ended) {
      expect(code).toBe(78);
      expect(leaksIn(out + err, { ...SECRETS, ...KEYS })).toEqual([]);
      // The reports are about the files, each of them.
      if (turn === 0) for (const name of Object.keys(files)) expect(out + err).toContain(name);
    }
  }
});

it("a proxy that logs requests unchanged is found to leak", async () => {
  await using backend = await startRawBackend();
  await using naive = await startNaiveProxy(backend.url, { logs: true });
  const token = await signToken(signingPair("naive"), { sub: "bob" });
  const sent = [...traffic(token)].slice(0, 8);
  for (const bytes of sent) await exchange(naive, bytes, { responses: Infinity });
  await until(() => naive.lines.length > sent.length);
  const found = leaksIn(naive.lines.join("\n"), { ...SECRETS, token });
  expect(found.map((leak) => leak.slice(0, leak.indexOf(":")))).toEqual([
    ...["query secret", "cookie", "another token", "basic credentials", "token", "a token"],
  ]);
});

it("the usual messages about a broken file are found to leak", () => {
  const [broken] = parseDocument(`users: [ "${hash}"\n`).errors;
  expect(leaksIn(String(broken), KEYS).join("\n")).toMatch(/hash's salt: .*\n.*a password's hash/s);
});
