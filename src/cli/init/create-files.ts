import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { basename, join, relative } from "node:path";
import { hashPassword } from "../../credentials/hashing/new-hash.ts";
import { systemClock } from "../../lib/clock.ts";
import { createDevelopmentCertificate } from "../../server/tls/development-certificate.ts";
import { makeKeyFile } from "../keys/make-key-file.ts";
import type { InitSettings } from "./init-settings.ts";
import { kustomization, systemdUnit } from "./runner-files.ts";

/** Validity of the certificate, in days. `check` warns during the last 30. */
const DAYS = 90;

/** One file of a new deployment. */
export interface CreatedFile {
  readonly path: string;
  readonly about: string;
}

/**
 * Creates the files of a deployment, readable only by their owner. Writes nothing if one of them exists.
 *
 * @throws Error that names the first file that exists.
 */
export async function createFiles(settings: InitSettings): Promise<readonly CreatedFile[]> {
  const { directory, host, runner } = settings;
  const within = (name: string): string => join(directory, name);
  refuseToOverwrite(["config.yaml", "users.yaml", "tls.crt", "tls.key", "keys"].map(within));
  const hash = hashPassword(settings.password);
  const names = new Set([host, "localhost", "127.0.0.1", "::1"]);
  const { cert, key } = await createDevelopmentCertificate([...names], DAYS);
  const files: CreatedFile[] = [];
  const write = async (name: string, content: string, about: string): Promise<void> => {
    await writeFile(within(name), content, { mode: 0o600, flag: "wx" });
    files.push({ path: within(name), about });
  };
  await mkdir(within("keys"), { recursive: true, mode: 0o700 });
  await write("config.yaml", configuration(settings), "the configuration");
  await write("users.yaml", users(settings.username, hash), `one user, ${settings.username}`);
  await write("tls.crt", cert, `a certificate for ${host}, self-signed, valid for ${DAYS} days`);
  await write("tls.key", key, "its private key");
  const signingKey = await firstKey(within("keys"));
  files.push({ path: signingKey, about: "the key that signs tokens" });
  await write(
    ".gitignore",
    "# Private keys and password hashes.\n*\n",
    "keeps all of this out of Git",
  );
  if (runner === "systemd") {
    await write("sallyport.service", systemdUnit(directory), "a systemd unit");
  }
  if (runner === "kubernetes") {
    const keyPath = relative(directory, signingKey);
    await write("kustomization.yaml", kustomization(keyPath), "the Secrets for the sidecar");
  }
  return files;
}

function refuseToOverwrite(paths: readonly string[]): void {
  for (const path of paths) {
    if (existsSync(path)) {
      throw new Error(`${path} already exists; choose another directory with --directory`);
    }
  }
}

async function firstKey(directory: string): Promise<string> {
  const nowMs = systemClock.now();
  const { file } = await makeKeyFile({
    directory,
    algorithm: "ES256",
    name: undefined,
    nowMs,
    newestMs: undefined,
    signsFromMs: nowMs,
  });
  return join(directory, basename(file));
}

function configuration({ listen, backend, runner }: InitSettings): string {
  // In a pod, the default address fits every application behind the sidecar.
  const server = runner === "kubernetes" ? "" : `  listen: "${listen}"\n`;
  return `# sallyport check --config config.yaml reports every error; docs/reference/configuration.md lists every key.
server:
${server}  tls: { certFile: tls.crt, keyFile: tls.key }

users:
  - { kind: file, path: users.yaml }

tokens:
  keys: keys

# Tried from the most specific to the least. Every route needs a token unless it says auth: none.
routes:
  # - { name: docs, path: /docs/, methods: [GET, HEAD], auth: none, upstream: app }
  # - { name: reports, path: /reports/, require: { groups: { any: [staff] } }, upstream: app }
  - { name: everything, path: /, upstream: app }

upstreams:
  app: { targets: ["${backend}"] }
`;
}

function users(username: string, hash: string): string {
  return `# sallyport hash-password prints the hash of another password. Changes take effect within seconds.
users:
  "${username}":
    password: ${hash}
    groups: [staff]
`;
}
