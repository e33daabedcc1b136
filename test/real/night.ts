/** A Sallyport with everything that it can depend on, under load, and everywhere that an operator looks. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Status } from "../../src/core/status.ts";
import { sectionsOf } from "../../src/server/admin/status/sections.ts";
import { command, keysCommand } from "../cli/command.ts";
import { ask, askLogin, fieldsOf } from "../support/ask.ts";
import { type BackendProcess, startBackendProcess } from "../support/backend-process.ts";
import { testCertificates } from "../support/certificates.ts";
import { freePort } from "../support/dead-ends.ts";
import { entry } from "../support/entry.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { imageFlags } from "../support/image-flags.ts";
import { ALICE, cheapHash } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { newKey, type OidcIssuer, ORDERS, startIssuer } from "./oidc-issuer.ts";
import { type RedisServer, startRedis } from "./redis-server.ts";
import { SETTINGS, type SlapdServer, startSlapd } from "./slapd-server.ts";
import { smallDisk, type SmallDisk } from "./small-disk.ts";

export interface Night extends AsyncDisposable {
  readonly backend: BackendProcess;
  readonly issuer: OidcIssuer;
  readonly redis: RedisServer;
  readonly slapd: SlapdServer;
  /** Holds the log; undefined where it cannot be mounted. */
  readonly disk: SmallDisk | undefined;
  readonly directory: string;
  /** To Sallyport. */
  signal(name: NodeJS.Signals): void;
  /** The lines of its log. */
  log(): string;
  /** Runs a command with its configuration; `top` connects as an operator does. */
  run(
    ...args: readonly string[]
  ): Promise<{ readonly code: number; readonly out: string; readonly err: string }>;
  /** What `top --once --format json` says; rejects if it fails. */
  top(): Promise<Status>;
  /** A page of the admin listener. */
  page(path: string): Promise<string>;
}

/** How often each client sends a request, in milliseconds: four make twenty a second. */
const EVERY_MS = 200;

/** Room for the log of a test. */
const LOG_BYTES = 8 * 1024 * 1024;

export async function startNight(): Promise<Night> {
  await using stack = new AsyncDisposableStack();
  const backend = stack.use(await startBackendProcess());
  const issuer = stack.use(await startIssuer(newKey("first")));
  const redis = stack.use(await startRedis());
  const slapd = stack.use(await startSlapd());
  await slapd.hold([{ name: "bob", password: "banana", groups: ["sales"] }]);
  const disk = await smallDisk(LOG_BYTES);
  if (disk !== undefined) stack.use(disk);
  const place = stack.use(await temporaryDirectory());
  const directory = place.path;
  const { ca, server } = await testCertificates();
  await place.write("tls.crt", server.cert);
  await place.write("tls.key", server.key);
  await chmod(join(directory, "tls.key"), 0o600);
  const users = { [ALICE.username]: { password: cheapHash(ALICE.password), groups: ["sales"] } };
  await place.write("users.yaml", JSON.stringify({ users }));
  await chmod(join(directory, "users.yaml"), 0o600);
  await mkdir(join(directory, "keys"), { mode: 0o700 });
  await keysCommand("generate", "-d", join(directory, "keys"));
  await keysCommand("generate", "-d", join(directory, "keys"), "--force");
  const [port, adminPort] = [await freePort(), await freePort()];
  const config = {
    server: { listen: `127.0.0.1:${port}`, tls: { certFile: "tls.crt", keyFile: "tls.key" } },
    admin: { listen: `127.0.0.1:${adminPort}` },
    users: [
      { kind: "file", path: "users.yaml" },
      { kind: "ldap", url: slapd.url, startTls: false, ...SETTINGS },
    ],
    tokens: {
      keys: "keys",
      trusted: [
        { issuer: issuer.issuer, audience: ORDERS, algorithms: ["ES256"], discovery: true },
      ],
    },
    shared: { kind: "redis", url: redis.url },
    upstreams: { app: { targets: [backend.url] } },
    log: { format: "json" },
  };
  const file = await place.write("config.yaml", JSON.stringify(config, undefined, 2));
  const log = join(disk?.path ?? directory, "log");
  const output = openSync(log, "a");
  const child = spawn(process.execPath, [...imageFlags(), entry(), "serve", "--config", file], {
    env: { ...process.env, SALLYPORT_ENTRY: undefined },
    stdio: ["ignore", output, "inherit"],
  });
  closeSync(output);
  stack.defer(async () => {
    child.kill("SIGKILL");
    await once(child, "close");
  });
  const gate = { port, ca };
  const admin = { port: adminPort };
  const page = async (path: string): Promise<string> => (await ask(admin, path)).body;
  await until(
    () =>
      page("/readyz").then(
        (text) => text === "ready\n",
        () => false,
      ),
    25_000,
  );
  const own = fieldsOf(await askLogin(gate, ALICE))["token"];
  const tokens = [String(own), await issuer.tokenFor(ORDERS)];
  const load = setInterval(() => void send().catch(() => undefined), EVERY_MS);
  stack.defer(() => clearInterval(load));
  const send = async (): Promise<void> => {
    // The last one is of a key that the issuer may have made just now.
    const exp = Math.floor(Date.now() / 1000) + 60;
    const claims = { iss: issuer.issuer, aud: ORDERS, sub: "robot", exp };
    const unknown = await signToken(signingPair(randomUUID()), claims);
    await Promise.all([...tokens, unknown, ""].map((token) => ask(gate, "/orders", { token })));
  };
  const url = `http://127.0.0.1:${adminPort}`;
  const run: Night["run"] = (...args) => command([...args, "--config", file]);
  const rest = stack.move();
  return {
    backend,
    issuer,
    redis,
    slapd,
    disk,
    directory,
    signal: (name) => void child.kill(name),
    log: () => readFileSync(log, "utf8"),
    run,
    async top() {
      const { out, err } = await command(["top", "--once", "--format", "json", "--url", url]);
      if (err !== "") throw new Error(err);
      return JSON.parse(out);
    },
    page,
    [Symbol.asyncDispose]: () => rest.disposeAsync(),
  };
}

/** What an operator reads, on one line each, as words alone. */
interface Displays {
  readonly top: string;
  readonly page: string;
  readonly verbose: string;
  readonly doctor: string;
  readonly check: string;
}

/** Returns everything that the displays say now. */
export async function displaysOf({ page, run }: Night): Promise<Displays> {
  const [top, html, verbose, doctor, check] = await Promise.all([
    run("top", "--once"),
    page("/-/"),
    page("/readyz?verbose"),
    run("doctor"),
    run("check"),
  ]);
  return {
    top: wordsOf(top.out),
    page: wordsOf(html.replaceAll(/<style>.*?<\/style>|<[^>]*>/gs, " ")),
    verbose: wordsOf(verbose),
    doctor: wordsOf(doctor.out.replaceAll(/^\+.*$/gm, "")),
    check: wordsOf(check.out + check.err),
  };
}

/** The displays differ in layout and punctuation. */
function wordsOf(text: string): string {
  return text.replaceAll(/: | fails(?=:)|\s+/g, " ").replaceAll(/ +/g, " ");
}

/** Returns the rows that are not good, and why the last reload failed. */
export function illIn(status: Status): string[] {
  const { upstreams, dependencies } = sectionsOf(status);
  const rows = [...upstreams.content.rows, ...dependencies.content.rows];
  const ill = rows.filter((cells) =>
    cells.some(({ look, tone }) => look === "badge" && tone !== "good"),
  );
  const lines = ill.map((cells) => wordsOf(cells.map(({ text }) => text).join(" ")));
  return [...lines, ...(status.reload?.problems ?? [])];
}
