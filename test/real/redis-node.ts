import { Redis, type RedisOptions } from "ioredis";
import { freePort } from "../support/dead-ends.ts";
import { installed } from "../support/program.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { type StoreServer, storeServer } from "./store-server.ts";

/** The installed ones of Redis and Valkey. */
export const REDIS_PROGRAMS = ["redis-server", "valkey-server"].filter(
  (name) => installed(name) !== undefined,
);

export interface RedisNode extends StoreServer {
  /** Sends a command, like redis-cli. */
  command(...words: readonly string[]): Promise<unknown>;
}

export interface RedisNodeOptions {
  readonly program: string;
  /** A free port by default. */
  readonly port?: number;
  /** Returns the arguments for its port and directory. */
  readonly args: (port: number, directory: string) => readonly string[];
  /** Files to write to its directory before it starts. */
  readonly files?: Readonly<Record<string, string>>;
  /** How tests connect and log in. */
  readonly client?: Pick<RedisOptions, "username" | "password" | "host" | "tls">;
}

/** Starts a server, which persists nothing unless its arguments say so. */
export async function startRedisNode(options: RedisNodeOptions): Promise<RedisNode> {
  const { program, port = await freePort(), args, files = {}, client: login } = options;
  const directory = await temporaryDirectory();
  for (const [name, content] of Object.entries(files)) await directory.write(name, content);
  const command = async (...[name = "", ...words]: readonly string[]): Promise<unknown> => {
    const client = new Redis({
      port,
      protocol: 2,
      lazyConnect: true,
      retryStrategy: () => null,
      connectTimeout: 2_000,
      commandTimeout: 2_000,
      disableClientInfo: true,
      enableReadyCheck: false,
      ...login,
    });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await client.call(name, ...words);
    } finally {
      client.disconnect();
    }
  };
  const server = storeServer({
    port,
    command: installed(program) ?? program,
    args: args(port, directory.path),
    answers: () => command("PING").then(Boolean, () => false),
  });
  await server.start();
  return {
    ...server,
    command,
    async [Symbol.asyncDispose]() {
      await server.kill();
      await directory.close();
    },
  };
}

/** Returns the usual arguments, without persistence. */
export function inMemory(port: number, directory: string): string[] {
  return [
    ...["--port", String(port), "--bind", "127.0.0.1", "--dir", directory],
    ...["--save", "", "--appendonly", "no"],
  ];
}
