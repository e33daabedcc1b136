import { generateKeyPairSync } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { onTestFinished } from "vitest";
import { command, type Ended } from "../cli/command.ts";
import { testCertificates } from "../support/certificates.ts";
import { cheapHash } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** The content of files by path, relative to the configuration. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** Returns the files that the documents' configurations name. */
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
    "oidc-secret": "secret",
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

/** Writes the files to a new directory, which is removed after the test. Returns its path. */
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

/** Runs `check` on a configuration next to these files. */
export async function checked(configuration: string, files: Files): Promise<Ended> {
  const directory = await directoryWith({ ...files, "config.yaml": configuration });
  return command(["check", "--config", join(directory, "config.yaml")]);
}
