import { lstatSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { hashPassword } from "../../src/credentials/hashing/new-hash.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createDevelopmentCertificate } from "../../src/server/tls/development-certificate.ts";
import { writeNewKey } from "../../src/tokens/keys/key-directory.ts";
import { keyFileName, makeNamedKey } from "../../src/tokens/keys/key-making.ts";
import type { InitSettings } from "./init-settings.ts";
import { installedProgram } from "./own-command.ts";

/** Validity of the certificate, in days. `check` warns during the last 30. */
const DAYS = 90;

/** The names of what is always created. */
const NAMES = ["config.yaml", "users.yaml", "tls.crt", "tls.key", "keys", ".gitignore"];
/** The name of what is created besides, for those that need it. */
const OF_RUNNER = { shell: [], systemd: ["sallyport.service"], kubernetes: ["kustomization.yaml"] };

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
  refuseToOverwrite([...NAMES, ...OF_RUNNER[runner]].map(within));
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
    await write("sallyport.service", systemdUnit(resolve(directory)), "a systemd unit");
  }
  if (runner === "kubernetes") {
    const keyPath = relative(directory, signingKey);
    await write("kustomization.yaml", kustomization(keyPath), "the Secrets for the sidecar");
  }
  return files;
}

function refuseToOverwrite(paths: readonly string[]): void {
  for (const path of paths) {
    // Also a link that leads nowhere.
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) {
      throw new Error(`${path} already exists; choose another directory with --directory`);
    }
  }
}

async function firstKey(directory: string): Promise<string> {
  const nowMs = systemClock.now();
  const { kid, key } = await makeNamedKey("ES256");
  const file = join(directory, keyFileName(kid, nowMs));
  const now = Math.floor(nowMs / 1000);
  await writeNewKey(file, { kid, key, alg: "ES256", iat: now, nbf: now });
  return file;
}

const BROWSER = `
# People sign in on a page, at https://HOST/_sallyport/login, and sign out at https://HOST/_sallyport/logout.
browser:
  page: { title: Sallyport }
  # providers: [{ name: company, issuer: https://id.example.com, clientId: sallyport }]
`;

function configuration(settings: InitSettings): string {
  const { listen, adminListen, backend, browser, runner } = settings;
  // In a pod, the default addresses fit every application behind the sidecar, and the kubelet's probes.
  const server = runner === "kubernetes" ? "" : `  listen: "${listen}"\n`;
  const admin =
    runner === "kubernetes"
      ? ""
      : `
# Health, metrics and the status page, without a login: keep it away from strangers.
admin:
  listen: "${adminListen}"
`;
  return `# sallyport check config.yaml reports every error; sallyport schema describes every key.
server:
${server}  tls: { certFile: tls.crt, keyFile: tls.key }
${admin}
users:
  - { kind: file, path: users.yaml }

tokens:
  keys: keys
${browser ? BROWSER : ""}
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

/**
 * Returns a hardened systemd unit that runs the installed program as a user of its own, which can read nothing of the
 * directory: systemd hands it copies (systemd.exec(5), "Credentials").
 *
 * @param directory absolute.
 */
function systemdUnit(directory: string): string {
  const files = ["config.yaml", "users.yaml", "tls.crt", "tls.key", "keys"].map(
    (name) => `LoadCredential=${name}:${join(directory, name).replaceAll("%", "%%")}`,
  );
  return `# systemctl link ${quoted(join(directory, "sallyport.service"))}
# systemctl enable --now sallyport
# After a change of a file: systemctl restart sallyport. Needs systemd 250 or newer.
[Unit]
Description=Sallyport authenticating proxy
Wants=network-online.target
After=network-online.target

[Service]
DynamicUser=yes
# Copies of the files, which only this service can read.
${files.join("\n")}
# The keys among them get a directory of their own, in memory.
RuntimeDirectory=sallyport
RuntimeDirectoryMode=0700
ExecStartPre=/bin/sh -c 'install -m 600 "$$CREDENTIALS_DIRECTORY"/keys_* "$$RUNTIME_DIRECTORY"'
Environment=SALLYPORT_TOKENS__KEYS=%t/sallyport
ExecStart=${quoted(installedProgram() ?? USUAL_PROGRAM)} serve --config \${CREDENTIALS_DIRECTORY}/config.yaml
Restart=on-failure
# Longer than server.drain.delay and server.drain.timeout together.
TimeoutStopSec=45
LimitNOFILE=65536
# Ports below 1024.
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes
LockPersonality=yes
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
UMask=0077

[Install]
WantedBy=multi-user.target
`;
}

/** Where `npm install --global` puts it on most systems. */
export const USUAL_PROGRAM = "/usr/local/bin/sallyport";

/** Quotes a word of a command line in a unit file (systemd.syntax(7)), where `%` and `$` would be expanded. */
function quoted(word: string): string {
  const plain = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%$+=:,./-]+$/.test(plain) ? plain : JSON.stringify(plain);
}

/**
 * Returns a kustomization with the three Secrets that the component `deploy/kubernetes/sidecar` mounts.
 *
 * @param signingKey the key file, relative to the kustomization.
 */
function kustomization(signingKey: string): string {
  return `# kubectl apply -k . creates the Secrets that deploy/kubernetes/sidecar mounts. The component has a config.yaml of its own.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
secretGenerator:
  - name: sallyport-users
    files: [users.yaml]
  - name: sallyport-tls
    type: kubernetes.io/tls
    files: [tls.crt, tls.key]
  - name: sallyport-keys
    files: [${signingKey}]
# The component names these Secrets. Sallyport follows changes of their content.
generatorOptions:
  disableNameSuffixHash: true
`;
}
