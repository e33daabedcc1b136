import { execFileSync } from "node:child_process";
import { globSync } from "node:fs";
import { chmod, chown, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import type { ContractUser } from "../credentials/user-store-contract.ts";
import { cheapHash } from "../credentials/fixture.ts";
import { testCertificates } from "../support/certificates.ts";
import { freePort } from "../support/dead-ends.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { asUser, type StoreServer, storeServer } from "./store-server.ts";

/** Debian installs the programs outside PATH. */
const [BIN] = globSync("/usr/lib/postgresql/*/bin").toSorted().toReversed();

export const postgresMissing = BIN === undefined ? "not installed: postgresql" : undefined;

export interface PostgresServer extends StoreServer {
  readonly url: string;
  hold(users: readonly ContractUser[]): Promise<void>;
  query(text: string): Promise<void>;
}

/** Starts PostgreSQL with TLS and a table of users that `sallyport` may read. */
export async function startPostgres(): Promise<PostgresServer> {
  const directory = await temporaryDirectory();
  const owner = asUser("postgres");
  if (owner.uid !== undefined && owner.gid !== undefined) {
    await chown(directory.path, owner.uid, owner.gid);
  }
  const data = join(directory.path, "data");
  const bin = BIN ?? "";
  const options = ["-D", data, "-U", "admin", "--auth=scram-sha-256", "--no-sync"];
  const secret = join(directory.path, "secret");
  await writeFile(secret, PASSWORD);
  await chmod(secret, 0o644);
  execFileSync(join(bin, "initdb"), [...options, `--pwfile=${secret}`], {
    ...owner,
    stdio: "pipe",
  });
  const { ca, server } = await testCertificates();
  for (const [name, content] of Object.entries({ "tls.crt": server.cert, "tls.key": server.key })) {
    const file = join(data, name);
    await writeFile(file, content, { mode: 0o600 });
    if (owner.uid !== undefined && owner.gid !== undefined) {
      await chown(file, owner.uid, owner.gid);
    }
  }
  const port = await freePort();
  const settings = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
    ssl: "on",
    ssl_cert_file: "tls.crt",
    ssl_key_file: "tls.key",
    fsync: "off",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const query = async (text: string, values: readonly unknown[] = []): Promise<void> => {
    const client = new pg.Client({
      host: "127.0.0.1",
      port,
      user: "admin",
      password: PASSWORD,
      database: "postgres",
      ssl: { ca },
    });
    client.on("error", () => undefined);
    await client.connect();
    try {
      await client.query(text, [...values]);
    } finally {
      await client.end();
    }
  };
  const program = storeServer({
    port,
    command: join(bin, "postgres"),
    args: ["-D", data, ...args],
    user: "postgres",
    answers: () =>
      query("SELECT 1").then(
        () => true,
        () => false,
      ),
  });
  await program.start();
  await query("CREATE TABLE users (name text PRIMARY KEY, hash text, groups text[], off boolean)");
  await query(`CREATE ROLE sallyport LOGIN PASSWORD '${PASSWORD}'`);
  await query("GRANT SELECT ON users TO sallyport");
  return {
    ...program,
    url: `postgres://sallyport:${PASSWORD}@127.0.0.1:${port}/postgres`,
    query,
    async hold(users) {
      await program.start();
      const rows = users.map(({ name, password, groups = [] }) => ({
        name,
        hash: cheapHash(password),
        groups,
        off: false,
      }));
      await query("DELETE FROM users");
      for (const row of rows) {
        await query("INSERT INTO users VALUES ($1, $2, $3, $4)", Object.values(row));
      }
    },
    async [Symbol.asyncDispose]() {
      await program.kill();
      await directory.close();
    },
  };
}

const PASSWORD = "of-the-test";

export const QUERY =
  "SELECT hash AS password_hash, groups, off AS disabled FROM users WHERE name = $1;";
