/** A newcomer's wishes about users and tokens: routes and groups, LDAP, PostgreSQL, an end of tokens, other keys. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { codesIn, readDocument } from "../../docs/markdown.ts";
import { ask } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { until } from "../../support/until.ts";
import { postgresMissing, startPostgres } from "../postgres-server.ts";
import { slapdMissing, startSlapd } from "../slapd-server.ts";
import { blockOf, follow, type Followed, hashOfPassword, PASSWORD } from "./follow.ts";

async function statusOf(followed: Followed, path: string, token?: string): Promise<number> {
  return (await ask(followed, path, token === undefined ? {} : { token })).status;
}

it("two users with groups, and routes for them", async () => {
  const followed = await follow("protect-an-app");
  const [checks = ""] = blockOf("protect-an-app", "sallyport check").split("sallyport serve");
  expect(await followed.run(checks)).toMatch(/is valid[^]*everything[^]*accepts connections/);
  const [admin, alice] = [await followed.login("admin"), await followed.login("alice")];
  const all = (token?: string): Promise<number[]> =>
    Promise.all(
      ["/orders", "/reports/2026", "/docs/intro"].map((path) => statusOf(followed, path, token)),
    );
  expect(await all(admin)).toEqual([200, 200, 200]);
  expect(await all(alice)).toEqual([200, 403, 200]);
  expect(await all()).toEqual([401, 401, 200]);
  const [refused = "", passed = "", around = ""] = blockOf("protect-an-app", "curl")
    .replace("ADDRESS-OF-THIS-MACHINE:8080", `127.0.0.2:${new URL(followed.backend.url).port}`)
    .split("\n");
  expect(await followed.run(refused)).toContain('"success":false');
  expect(await followed.run(`TOKEN=${alice}\n${passed}`)).toContain("alice");
  await expect(followed.run(around)).rejects.toThrow("Failed to connect");
});

const USER = { name: "alice", password: "a password of alice", groups: ["sales"] };

/** Runs the check of a page about users: the doctor is content, and alice gets a token with her groups. */
async function expectLogin(followed: Followed, answers: RegExp): Promise<void> {
  const out = await followed.sh("sallyport doctor");
  expect(out).toMatch(answers);
  const { token } = JSON.parse(out.slice(out.lastIndexOf('{"id"'))) as { readonly token: string };
  const { body } = await ask(followed, "/orders", { token });
  expect(body).toMatch(/"x-auth-groups",\s*"sales"/i);
}

it.skipIf(slapdMissing !== undefined)("users of LDAP", async () => {
  await using slapd = await startSlapd();
  await slapd.hold([USER]);
  await slapd.admin((client) =>
    client.add("cn=sallyport,dc=example,dc=com", {
      objectClass: ["organizationalRole", "simpleSecurityObject"],
      cn: "sallyport",
      userPassword: "of-the-service",
    }),
  );
  const followed = await follow("ldap", {
    filled: { "ldaps://ldap.example.com": slapd.secureUrl, "…": USER.password },
    files: { "ldap-password": "of-the-service", "ca.crt": (await testCertificates()).ca },
  });
  await expectLogin(followed, /ldap: answers in/);
});

it.skipIf(postgresMissing !== undefined)("users of PostgreSQL", async () => {
  await using postgres = await startPostgres();
  const hash = await hashOfPassword();
  // The page starts with an empty database.
  await postgres.query("DROP TABLE users; DROP ROLE sallyport");
  await postgres.query(blockOf("postgresql", "CREATE TABLE").replace("$argon2id$…", () => hash));
  const url = new URL(postgres.url);
  url.password = "change-me";
  const followed = await follow("postgresql", {
    filled: { "…": PASSWORD },
    files: { "pg-url": url.href, "ca.crt": (await testCertificates()).ca },
  });
  await expectLogin(followed, /postgres: answers in/);
});

/** Returns the command of a row of the table of the page about revocations. */
function revocation(what: string): string {
  const rows = readDocument("docs/how-to/revoke.md").rows("to end", "do");
  const [command = ""] = codesIn(rows.find((row) => row["to end"] === what)?.["do"]);
  return command;
}

it("an end of a token, of all tokens of a user, and of one's own", async () => {
  const followed = await follow("revoke");
  const [first, second, admin] = [
    await followed.login("alice"),
    await followed.login("alice"),
    await followed.login("admin"),
  ];
  const gone = async (token: string): Promise<void> =>
    until(async () => (await statusOf(followed, "/orders", token)) === 401, 2_000);
  await writeFile(join(followed.deployment, "token.txt"), first);
  await followed.run(revocation("a token that you have"));
  await gone(first);
  expect(await statusOf(followed, "/orders", second)).toBe(200);
  await followed.run(revocation("all tokens of a user").replace("NAME", "alice"));
  await gone(second);
  expect(await statusOf(followed, "/orders", admin)).toBe(200);
  const [method, path = ""] = revocation("your own token, as a client").split(" ");
  await ask(followed, path, { method: method ?? "", token: admin });
  await gone(admin);
  const inspect = "sallyport token inspect --config config.yaml --token-file token.txt";
  expect(await followed.run(`${inspect} || true`)).toMatch(/revocation +its jti is revoked/);
});

it("another signing key, and all of them after a theft", async () => {
  const followed = await follow("rotate-keys");
  const token = await followed.login("alice");
  const listed = await followed.sh("sallyport keys rotate");
  expect(listed).toMatch(/published/);
  expect(listed).toMatch(/signing/);
  expect(await statusOf(followed, "/orders", token)).toBe(200);
  await followed.sh("sallyport keys retire");
  await followed.sh("mkdir -m 700 new-keys");
  await until(async () => (await statusOf(followed, "/orders", token)) === 401);
  expect(await statusOf(followed, "/orders", await followed.login("alice"))).toBe(200);
});
