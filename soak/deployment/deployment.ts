import { generateKeyPairSync } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { testCertificates } from "../../test/support/certificates.ts";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { until } from "../../test/support/until.ts";
import { parseLogLine } from "../accounts/access-line.ts";
import type { LogBook } from "../accounts/log-book.ts";
import { Backend } from "./backend.ts";
import { configurationFor } from "./configuration.ts";
import { foreignPair, keySetFile, lastingUsers, usersFile } from "./identities.ts";
import { startProgram } from "./program.ts";

const SOURCE = join(import.meta.dirname, "../../src/main.ts");
const BUILT = join(import.meta.dirname, "../../dist/main.js");

/** Returns the built script if there is one, otherwise the source. */
export function chosenEntry(): string {
  return existsSync(BUILT) ? BUILT : SOURCE;
}

export interface DeploymentOptions {
  /** The script that is Sallyport. */
  readonly entry: string;
  readonly workers: number;
  readonly book: LogBook;
}

/** A running Sallyport with its environment: two backends, files, keys. */
export interface Deployment extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
  readonly adminPort: number;
  /** The WebSocket URL of Node's inspector. */
  readonly inspector: string;
  /** The authority that issued Sallyport's certificate, PEM. */
  readonly ca: string;
  readonly backends: readonly Backend[];
  readonly users: ReturnType<typeof lastingUsers>;
  /** The foreign issuer's current signing key, which is in the key file. */
  foreignKey: ReturnType<typeof foreignPair>;
  /** Replaces `users/users.yaml` or `trusted/jwks.json` by renaming a new file, the way editors and Kubernetes do. */
  replaceFile(name: string, content: string): Promise<void>;
  /** Aborted if Sallyport ends unexpectedly, with an error that describes how. */
  readonly died: AbortSignal;
  /** Sends SIGTERM; resolves with the exit code, or the name of the signal that ended it. */
  stop(): Promise<number | string>;
}

const START_MS = 30_000;

/** Node's own messages about the inspector on standard error. */
const ABOUT_INSPECTOR =
  /^(For help, see: https:\/\/nodejs\.org|Debugger (attached|ending on)|Waiting for the debugger)/;

/** Writes the files, starts the backends and Sallyport; resolves when it listens. */
export async function deploy({ entry, workers, book }: DeploymentOptions): Promise<Deployment> {
  await using undo = new AsyncDisposableStack();
  const directory = undo.use(await temporaryDirectory());
  const { ca, server } = await testCertificates();
  const users = lastingUsers();
  const foreignKey = foreignPair();
  for (const name of ["users", "trusted", "keys"]) await mkdir(join(directory.path, name));
  await directory.write("tls.crt", server.cert);
  await directory.write("tls.key", server.key);
  await directory.write("keys/soak.pem", signingKey());
  await directory.write("users/users.yaml", usersFile(users));
  await directory.write("trusted/jwks.json", keySetFile([foreignKey]));
  const backends = await Promise.all([Backend.start(), Backend.start()]);
  for (const backend of backends) undo.defer(() => backend.kill());
  const targets = backends.map(({ address }) => address);
  const configuration = configurationFor(targets, workers);
  const config = await directory.write("config.yaml", JSON.stringify(configuration));

  const ports = new Map<string, number>();
  let inspector = "";
  const proxy = startProgram({
    flags: ["--inspect=127.0.0.1:0"],
    script: entry,
    args: ["serve", "--config", config],
    onLine(text) {
      const { msg, port } = ports.size < 2 ? (parseLogLine(text) ?? {}) : {};
      if (typeof msg === "string" && typeof port === "number") ports.set(msg, port);
      book.read(text);
    },
    onErrorLine(text) {
      const place = /^Debugger listening on (ws:\S+)$/.exec(text)?.[1];
      if (place !== undefined) inspector = place;
      else if (!ABOUT_INSPECTOR.test(text)) book.readError(text);
    },
    messages: false,
  });
  undo.defer(() => proxy.kill());
  const death = new AbortController();
  let asked = false;
  void proxy.ended.then((code) => {
    const words = [`Sallyport ended by itself with ${code}`, ...book.errors.examples];
    if (!asked) death.abort(new Error(words.join("\n")));
  });
  await until(() => (ports.size === 2 && inspector !== "") || death.signal.aborted, START_MS);
  death.signal.throwIfAborted();
  const stack = undo.move();
  return {
    pid: proxy.pid,
    port: ports.get("listening") ?? 0,
    adminPort: ports.get("admin listening") ?? 0,
    inspector, ca, backends, users, foreignKey,
    async replaceFile(name, content) {
      const path = join(directory.path, name);
      await writeFile(`${path}.new`, content);
      await rename(`${path}.new`, path);
    },
    died: death.signal,
    async stop() {
      asked = true;
      proxy.child.kill("SIGTERM");
      return proxy.ended;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function signingKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ format: "pem", type: "pkcs8" });
}
