import { Redis } from "ioredis";
import { freePort } from "../support/dead-ends.ts";
import { installed, missing } from "../support/program.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { startRelay } from "./relay.ts";
import { type StoreServer, storeServer } from "./store-server.ts";

const PROGRAM = installed("valkey-server") === undefined ? "redis-server" : "valkey-server";
export const redisMissing = missing(PROGRAM);

const PASSWORD = "of-the-test";

export interface RedisServer extends StoreServer {
  readonly url: string;
  /** The URL of a way to it that takes longer. */
  readonly slowUrl: string;
  /** How much longer an answer takes on that way, in milliseconds. */
  delayMs: number;
  /** What redis-cli would do. */
  command(...words: readonly string[]): Promise<unknown>;
}

/** Redis or Valkey without files. */
export async function startRedis(): Promise<RedisServer> {
  const directory = await temporaryDirectory();
  const port = await freePort();
  const command = async (...[name = "", ...args]: readonly string[]): Promise<unknown> => {
    const client = new Redis({
      ...{ port, password: PASSWORD, protocol: 2, lazyConnect: true, retryStrategy: () => null },
      ...{ connectTimeout: 2_000, commandTimeout: 2_000, disableClientInfo: true },
    });
    client.on("error", () => undefined);
    try {
      await client.connect();
      return await client.call(name, ...args);
    } finally {
      client.disconnect();
    }
  };
  const program = storeServer({
    ...{ port, command: installed(PROGRAM) ?? PROGRAM },
    args: [
      ...["--port", String(port), "--bind", "127.0.0.1", "--dir", directory.path],
      ...["--save", "", "--appendonly", "no", "--requirepass", PASSWORD],
    ],
    answers: () => command("PING").then(Boolean, () => false),
  });
  await program.start();
  const relay = await startRelay(port);
  return {
    ...program,
    url: `redis://:${PASSWORD}@127.0.0.1:${port}`,
    slowUrl: `redis://:${PASSWORD}@127.0.0.1:${relay.port}`,
    get delayMs() {
      return relay.delayMs;
    },
    set delayMs(value) {
      relay.delayMs = value;
    },
    command,
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]();
      await program.kill();
      await directory.close();
    },
  };
}
