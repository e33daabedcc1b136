import { argon2Sync, generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { testCertificates } from "../../../test/support/certificates.ts";
import { imageFlags, imageMalloc } from "../../../test/support/image-flags.ts";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { until } from "../../../test/support/until.ts";
import { parseLogLine } from "../../accounts/access-line.ts";
import { startProgram } from "../../deployment/program.ts";
import { configurationFor, USER } from "./configuration.ts";
import { ownCore } from "./own-core.ts";
import type { ShippedSettings } from "./shipped-settings.ts";
import { startBackend } from "./start-backend.ts";
import { SIGNER } from "./tokens.ts";

export interface VictimOptions {
  /** The script that is Sallyport. */
  readonly entry: string;
  readonly tls: boolean;
  readonly workers: number;
  readonly shipped: ShippedSettings;
  /** Node flags in addition to those of the image. */
  readonly flags: readonly string[];
}

/** An attacked Sallyport with a backend, started the way the image starts it. */
export interface Victim extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
  readonly adminPort: number;
  /** The port of a bare Node server on the attackers' cores that is not attacked. */
  readonly calmPort: number;
  /** The authority of its certificate, PEM. */
  readonly ca: string;
  /** Returns how the process ended, if it has. */
  readonly ended: () => string | undefined;
}

const START_MS = 30_000;

/**
 * The size that Node chooses for its old space in the container of the manifests: in a cgroup of 384 MiB, Node 26.10 has a
 * `heap_size_limit` of 280 MiB, 256 of them for the old space. The smaller that is, the sooner V8 collects garbage.
 */
const OLD_SPACE_MIB = 256;

/** Starts Sallyport and its backends; resolves when it listens. */
export async function startVictim(options: VictimOptions): Promise<Victim> {
  await using undo = new AsyncDisposableStack();
  const directory = undo.use(await temporaryDirectory());
  const { ca, server } = await testCertificates();
  await mkdir(join(directory.path, "keys"));
  await directory.write("keys/key.pem", signingKey());
  await directory.write("tls.crt", server.cert);
  await directory.write("tls.key", server.key);
  await directory.write("trusted.json", JSON.stringify({ keys: [SIGNER.jwk] }));
  await directory.write("users.yaml", JSON.stringify({ users: users() }));
  const [app, calm] = await Promise.all([startBackend(), startBackend()]);
  for (const { program } of [app, calm]) undo.defer(() => program.kill());
  const backendPorts = { app: app.port, calm: calm.port };
  const configuration = configurationFor({ ...options, backendPorts });
  const config = await directory.write("config.yaml", JSON.stringify(configuration));

  const ports = new Map<string, number>();
  const complaints: string[] = [];
  let ended: string | undefined;
  const proxy = startProgram({
    ...ownCore([...imageFlags(), `--max-old-space-size=${OLD_SPACE_MIB}`, ...options.flags]),
    script: options.entry,
    args: ["serve", "--config", config],
    env: imageMalloc(),
    onLine(line) {
      if (ports.size === 2) return;
      const { msg, port } = parseLogLine(line) ?? {};
      if (typeof msg === "string" && typeof port === "number") ports.set(msg, port);
    },
    onErrorLine: (line) => void complaints.push(line.slice(0, 300)),
    messages: false,
  });
  undo.defer(() => proxy.kill());
  void proxy.ended.then((code) => (ended = [code, ...complaints.slice(-5)].join(" ")));
  await until(() => ports.size === 2 || ended !== undefined, START_MS);
  if (ended !== undefined) throw new Error(`Sallyport did not start: ${ended}`);
  const stack = undo.move();
  return {
    pid: proxy.pid,
    port: ports.get("listening") ?? 0,
    adminPort: ports.get("admin listening") ?? 0,
    calmPort: calm.port,
    ca,
    ended: () => ended,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function signingKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ format: "pem", type: "pkcs8" });
}

/** Creates a user with the hash cost of `hash-password`: checking a password takes 19 MiB. */
function users(): object {
  const nonce = randomBytes(16);
  const cost = { memory: 19_456, passes: 2, parallelism: 1 };
  const tag = argon2Sync("argon2id", { message: USER.password, nonce, tagLength: 32, ...cost });
  const [salt, hash] = [nonce, tag].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  const password = `$argon2id$v=19$m=19456,t=2,p=1$${salt}$${hash}`;
  return { [USER.username]: { password, groups: ["sales"] } };
}
