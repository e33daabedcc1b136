import { generateKeyPairSync } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { onTestFinished } from "vitest";
import { command, type Ended } from "../cli/command.ts";
import { testCertificates } from "../support/certificates.ts";
import { cheapHash } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** The content of files by their paths, seen from the configuration. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** What the configurations of the documents name, as they name it. */
export async function namedFiles(): Promise<Files> {
  const { server, ca } = await testCertificates();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { privateKey: ownKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const clusterKey = { ...publicKey.export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" };
  return {
    "tls.crt": server.cert,
    "tls.key": server.key,
    "tls/tls.crt": server.cert,
    "tls/tls.key": server.key,
    "ca.crt": ca,
    "serviceaccount/ca.crt": ca,
    "serviceaccount/token": "secret",
    ".htpasswd": "myName:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC",
    "ldap-password": "secret",
    "state-password": "secret",
    "sentinel-password": "secret",
    "pg-url": "postgres://sallyport:secret@db.example.com/shop",
    "users.db": usersDatabase(),
    "users.yaml": JSON.stringify({ users: { alice: { password: cheapHash("a") } } }),
    "keys/2026-11.pem": privateKey.export({ format: "pem", type: "pkcs8" }),
    "assertion-keys/2026-11.pem": ownKey.export({ format: "pem", type: "pkcs8" }),
    "cluster-keys.json": JSON.stringify({ keys: [clusterKey] }),
  };
}

function usersDatabase(): Uint8Array {
  using database = new DatabaseSync(":memory:");
  database.exec("CREATE TABLE users (name, password_hash, groups, disabled)");
  return database.serialize();
}

/** Writes the files into a directory of their own, which is gone after the test; gives its path. */
export async function directoryWith(files: Files): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  for (const [name, content] of Object.entries(files)) {
    const file = join(directory.path, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content, { mode: 0o600 });
  }
  return directory.path;
}

/** What `check` says about a configuration beside these files. */
export async function checked(configuration: string, files: Files): Promise<Ended> {
  const directory = await directoryWith({ ...files, "config.yaml": configuration });
  return command(["check", "--config", join(directory, "config.yaml")]);
}
