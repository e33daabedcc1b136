import { Redis, type RedisOptions } from "ioredis";
import { freePort } from "../support/dead-ends.ts";
import { installed } from "../support/program.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { type StoreServer, storeServer } from "./store-server.ts";

/** Redis, and Valkey where it is installed. */
export const REDIS_PROGRAMS = ["redis-server", "valkey-server"].filter(
  (name) => installed(name) !== undefined,
);

export interface RedisNode extends StoreServer {
  /** What redis-cli would do. */
  command(...words: readonly string[]): Promise<unknown>;
}

export interface RedisNodeOptions {
  readonly program: string;
  /** Taken on a port of the system's choice if left out. */
  readonly port?: number;
  /** Given what it needs to know: its port and its directory. */
  readonly args: (port: number, directory: string) => readonly string[];
  /** Written into its directory before it starts. */
  readonly files?: Readonly<Record<string, string>>;
  /** How tests get in. */
  readonly client?: Pick<RedisOptions, "username" | "password" | "host" | "tls">;
}

/** A server that keeps nothing, unless its arguments say so. */
export async function startRedisNode(options: RedisNodeOptions): Promise<RedisNode> {
  const { program, port = await freePort(), args, files = {}, client: login } = options;
  const directory = await temporaryDirectory();
  for (const [name, content] of Object.entries(files)) await directory.write(name, content);
  const command = async (...[name = "", ...words]: readonly string[]): Promise<unknown> => {
    const client = new Redis({
      ...{ port, protocol: 2, lazyConnect: true, retryStrategy: () => null },
      ...{ connectTimeout: 2_000, commandTimeout: 2_000, disableClientInfo: true },
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
    ...{ port, command: installed(program) ?? program },
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

/** The usual arguments: nothing is written to files. */
export function inMemory(port: number, directory: string): string[] {
  return [
    ...["--port", String(port), "--bind", "127.0.0.1", "--dir", directory],
    ...["--save", "", "--appendonly", "no"],
  ];
}
