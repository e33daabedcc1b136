import { argon2Sync, randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { json } from "node:stream/consumers";
import { testCertificates } from "./certificates.ts";
import { startChild, type Child } from "./child.ts";
import { entry } from "./entry.ts";
import type { Gate } from "./gate.ts";
import { imageFlags, imageMalloc } from "./image-flags.ts";
import { leaksIn } from "./leaks.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

/** One line of the log. */
export type LogLine = Readonly<Record<string, unknown>>;

export interface Sallyport extends Gate {
  readonly pid: number;
  /** Undefined without TLS (`server.tls: off`), so that clients connect in the clear. */
  readonly ca: string | undefined;
  readonly adminPort: number;
  /** The directory that holds config.yaml, users.yaml and the certificate. */
  readonly directory: string;
  /** A token for alice. Throws with `withoutToken`. */
  readonly token: string;
  /** The log lines so far that are JSON. */
  log(): LogLine[];
  /** All lines of standard output so far. */
  lines(): readonly string[];
  /** Stops reading the log until the process has ended. */
  pauseLog(): void;
  stderr(): string;
  /** The secrets in what it has written so far. */
  leaks(): readonly string[];
  login(username: string, password: string): Promise<string>;
  /** Sends SIGTERM. Resolves with the exit code, or the name of the signal that ended it. */
  stop(): Promise<number | NodeJS.Signals>;
  signal(name: NodeJS.Signals): void;
  readonly exit: Promise<number | NodeJS.Signals>;
}

export type ConfigParts = { readonly [key: string]: unknown };

export interface SallyportOptions {
  /** Target of the upstream `app`. */
  readonly target: string;
  /** Merged over the default configuration: objects are merged, everything else is replaced. */
  readonly config?: ConfigParts;
  readonly env?: Record<string, string>;
  /** Flags for Node, instead of the image's. */
  readonly flags?: readonly string[];
  /** The file to start, instead of `entry()`. */
  readonly entry?: string;
  /** Further files next to config.yaml. */
  readonly files?: Readonly<Record<string, string>>;
  /** The certificate with which alice logs in after startup, if one is required. */
  readonly clientCertificate?: { readonly key: string; readonly cert: string };
  /** Does not log alice in, which takes a fifth of the CPU time of a start. */
  readonly withoutToken?: boolean;
  /** Logs alice in without verifying the server certificate, for tests that make it invalid. */
  readonly insecure?: boolean;
}

export const ALICE = { username: "alice", password: "correct horse battery staple" };

/**
 * Starts Sallyport the way the image does: `serve --config config.yaml` in a child process, from `entry()`, with the
 * image's flags. By default it has the user alice in the group sales, everything below /public/ without a token, and
 * everything else with one.
 */
export async function startSallyport(options: SallyportOptions): Promise<Sallyport> {
  const { ca, server } = await testCertificates();
  const directory = await temporaryDirectory();
  await directory.write("tls.crt", server.cert);
  await directory.write("tls.key", server.key);
  await directory.write("users.yaml", JSON.stringify(USERS));
  for (const [name, content] of Object.entries(options.files ?? {})) {
    await directory.write(name, content);
  }
  // JSON is YAML, too.
  const config = merge(defaultConfig(options.target), options.config ?? {});
  const authority = isParts(config["server"]) && config["server"]["tls"] === "off" ? undefined : ca;
  const file = await directory.write("config.yaml", JSON.stringify(config, undefined, 2));
  const env = { SALLYPORT_ENTRY: undefined, ...imageMalloc(), ...options.env };
  const child = startChild(
    options.entry ?? entry(),
    ["serve", "--config", file],
    env,
    options.flags ?? imageFlags(),
  );
  try {
    const port = await child.line(portOf("listening"));
    const adminPort = config["admin"] === "off" ? 0 : await child.line(portOf("admin listening"));
    const login = (username: string, password: string): Promise<string> =>
      logIn(
        {
          port,
          ca: authority,
          ...options.clientCertificate,
          rejectUnauthorized: options.insecure !== true,
        },
        username,
        password,
      );
    const token =
      options.withoutToken === true ? undefined : await login(ALICE.username, ALICE.password);
    const leaks = (): readonly string[] =>
      leaksIn([...child.lines, child.stderr()].join("\n"), { "alice's password": ALICE.password });
    const close = async (): Promise<void> => {
      await child.kill();
      await directory.close();
      // Checked in every test: nothing that Sallyport wrote may contain a secret.
      const found = leaks();
      if (found.length > 0) throw new Error(`the log holds ${found.join("\n")}`);
    };
    return {
      pid: child.pid,
      port,
      adminPort,
      ca: authority,
      get token() {
        if (token === undefined) throw new Error("it was started without a token");
        return token;
      },
      directory: directory.path,
      log: () => logLines(child),
      lines: () => child.lines,
      pauseLog: child.pause,
      stderr: child.stderr,
      leaks,
      login,
      stop() {
        child.signal("SIGTERM");
        return child.exit;
      },
      signal: child.signal,
      exit: child.exit,
      exited: child.exited,
      close,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await child.kill();
    await directory.close();
    throw error;
  }
}

/** Hashes a password as a PHC string that is cheap to verify. */
export function cheapHash(password: string): string {
  const nonce = randomBytes(16);
  const cost = { memory: 8192, passes: 1, parallelism: 1 };
  const hash = argon2Sync("argon2id", { message: password, nonce, tagLength: 32, ...cost });
  const [salt, tag] = [nonce, hash].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=8192,t=1,p=1$${salt}$${tag}`;
}

const USERS = {
  users: { [ALICE.username]: { password: cheapHash(ALICE.password), groups: ["sales"] } },
};

function defaultConfig(target: string): ConfigParts {
  return {
    server: {
      listen: "127.0.0.1:0",
      tls: { certFile: "tls.crt", keyFile: "tls.key" },
      drain: { delay: "0s", timeout: "5s" },
    },
    admin: { listen: "127.0.0.1:0" },
    users: [{ kind: "file", path: "users.yaml" }],
    routes: [
      { name: "public", path: "/public/", auth: "none", upstream: "app" },
      { name: "everything", path: "/", upstream: "app" },
    ],
    upstreams: { app: { targets: [target] } },
    log: { format: "json" },
  };
}

function merge(under: ConfigParts, over: ConfigParts): ConfigParts {
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const before = merged[key];
    merged[key] = isParts(before) && isParts(value) ? merge(before, value) : value;
  }
  return merged;
}

function isParts(value: unknown): value is ConfigParts {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function portOf(message: string): (line: string) => number | undefined {
  return (line) => {
    const parsed = parseLine(line);
    return parsed?.["msg"] === message ? Number(parsed["port"]) : undefined;
  };
}

function logLines(child: Child): LogLine[] {
  return child.lines.map(parseLine).filter((line) => line !== undefined);
}

function parseLine(line: string): LogLine | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    return isParts(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

async function logIn(
  where: {
    port: number;
    ca: string | undefined;
    key?: string;
    cert?: string;
    rejectUnauthorized: boolean;
  },
  username: string,
  password: string,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const { ca, ...secure } = where;
  const plain = { host: "127.0.0.1", port: where.port };
  const sent = (ca === undefined ? httpRequest : httpsRequest)(
    {
      ...(ca === undefined ? plain : { ...plain, ...secure, ca }),
      method: "POST",
      path: "/api/authenticate",
      headers: { "content-type": "application/json" },
      agent: false,
    },
    (response) => void json(response).then(resolve, reject),
  );
  sent.on("error", reject);
  sent.end(JSON.stringify({ username, password }));
  const answer = await promise;
  if (!isParts(answer) || typeof answer["token"] !== "string") {
    throw new Error(`${username} could not log in: ${JSON.stringify(answer)}`);
  }
  return answer["token"];
}
