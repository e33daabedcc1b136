import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { once } from "node:events";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { DatabaseSync } from "node:sqlite";
import bcrypt from "bcryptjs";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { cheapHash } from "../credentials/fixture.ts";
import { readDocument } from "../docs/markdown.ts";
import { ask, askLogin } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { listeningPort } from "../support/listening-port.ts";
import { ALICE, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { postgresMissing, startPostgres } from "./postgres-server.ts";
import { slapdMissing, startSlapd } from "./slapd-server.ts";

/** What an example refers to, and its replacement here. */
interface Setting {
  readonly replaced?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
}

type Start = (stack: AsyncDisposableStack) => Promise<Setting>;

const HELD = [{ name: ALICE.username, password: ALICE.password, groups: ["sales"] }];

const startLdap: Start = async (stack) => {
  const slapd = stack.use(await startSlapd());
  await slapd.hold(HELD);
  await slapd.admin((client) =>
    client.add("cn=sallyport,dc=example,dc=com", {
      objectClass: ["organizationalRole", "simpleSecurityObject"],
      cn: "sallyport",
      userPassword: "of-the-service",
    }),
  );
  return {
    replaced: { "ldaps://ldap.example.com": slapd.secureUrl },
    files: { "ldap-password": "of-the-service\n" },
  };
};

const startPg: Start = async (stack) => {
  const postgres = stack.use(await startPostgres());
  await postgres.hold(HELD);
  await postgres.query("ALTER TABLE users RENAME COLUMN hash TO password_hash");
  await postgres.query("ALTER TABLE users RENAME COLUMN off TO disabled");
  const { ca } = await testCertificates();
  return { files: { "pg-url": postgres.url, "ca.crt": ca } };
};

const startSqlite: Start = async (stack) => {
  const directory = stack.adopt(await temporaryDirectory(), (each) => each.close());
  const path = join(directory.path, "users.db");
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE users (name TEXT PRIMARY KEY, password_hash, groups, disabled)");
  const insert = database.prepare("INSERT INTO users VALUES (?, ?, ?, 0)");
  insert.run(ALICE.username, cheapHash(ALICE.password), '["sales"]');
  database.close();
  return { replaced: { "users.db": path } };
};

/** Starts an existing login server. */
const startLogin: Start = async (stack) => {
  const { server: certificate } = await testCertificates();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const right = JSON.stringify(await json(request)) === JSON.stringify(ALICE);
    response.statusCode = right ? 200 : 401;
    response.end(JSON.stringify({ user: { roles: ["sales"] } }));
  };
  const server = createServer(certificate, (request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stack.defer(() => void server.close());
  const url = `https://127.0.0.1:${listeningPort(server)}/login`;
  return { replaced: { "https://old.example.com/login": url } };
};

const EXAMPLES: Readonly<Record<string, { readonly missing?: string | undefined; start: Start }>> =
  {
    htpasswd: {
      start: async () => ({
        files: { ".htpasswd": `${ALICE.username}:${await bcrypt.hash(ALICE.password, 4)}\n` },
      }),
    },
    ldap: { missing: slapdMissing, start: startLdap },
    postgres: { missing: postgresMissing, start: startPg },
    sqlite: { start: startSqlite },
    http: { start: startLogin },
  };

/** Returns the examples of docs/users.md and docs/how-to/ldap.md with a single store, by its kind. */
function examples(): ReadonlyMap<string, string> {
  const pages = ["docs/users.md", "docs/how-to/ldap.md"];
  const blocks = pages.flatMap((page) => readDocument(page).blocks);
  const found = new Map<string, string>();
  for (const { language, text } of blocks) {
    if (language !== "yaml" || !text.includes("\nusers:\n")) continue;
    const { users } = parse(text) as { readonly users: readonly { readonly kind: string }[] };
    const [first] = users;
    if (users.length === 1 && first !== undefined) found.set(first.kind, text);
  }
  return found;
}

describe("the examples of user stores", () => {
  const stack = new AsyncDisposableStack();
  afterAll(() => stack.disposeAsync());

  test.each(Object.entries(EXAMPLES))(
    "%s: alice logs in and reaches the backend",
    async (kind, example) => {
      if (example.missing !== undefined) return;
      const { replaced = {}, files = {} } = await example.start(stack);
      const text = Object.entries(replaced).reduce(
        (all, [there, here]) => {
          expect(all).toContain(there);
          return all.replace(there, here);
        },
        examples().get(kind) ?? "",
      );
      const { users } = parse(text) as { readonly users: readonly object[] };
      const backend = stack.use(await startEchoBackend());
      const authority = stack.adopt(await temporaryDirectory(), (each) => each.close());
      const { ca } = await testCertificates();
      const file = await authority.write("ca.crt", ca);
      // The way a company's authorities are set in a container.
      const env = { NODE_EXTRA_CA_CERTS: file };
      await using gate = await startSallyport({
        target: backend.url,
        config: { users },
        files,
        env,
      });
      expect((await ask(gate, "/orders", { token: gate.token })).status).toBe(200);
      const seen = backend.requests.at(-1)?.rawHeaders ?? [];
      expect(JSON.stringify(seen)).toContain(kind === "htpasswd" ? ALICE.username : "sales");
      const wrong = await askLogin(gate, { username: ALICE.username, password: "wrong" });
      expect(wrong.status).toBe(401);
    },
    120_000,
  );

  test("each store with an example is tested here", () => {
    expect([...examples().keys()].toSorted()).toEqual(Object.keys(EXAMPLES).toSorted());
  });
});
