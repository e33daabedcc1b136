import { missing } from "../support/program.ts";
import { inMemory, REDIS_PROGRAMS, type RedisNode, startRedisNode } from "./redis-node.ts";
import { startRelay } from "./relay.ts";

export const redisMissing = REDIS_PROGRAMS.length === 0 ? missing("redis-server") : undefined;

const PASSWORD = "of-the-test";

export interface RedisServer extends RedisNode {
  readonly url: string;
  /** The URL of a relay that delays responses. */
  readonly slowUrl: string;
  /** The delay of that relay, in milliseconds. */
  delayMs: number;
}

/** Starts Redis or Valkey without persistence. */
export async function startRedis(program = REDIS_PROGRAMS[0] ?? ""): Promise<RedisServer> {
  const node = await startRedisNode({
    program,
    args: (port, directory) => [...inMemory(port, directory), "--requirepass", PASSWORD],
    client: { password: PASSWORD },
  });
  const relay = await startRelay(node.port);
  return {
    ...node,
    url: `redis://:${PASSWORD}@127.0.0.1:${node.port}`,
    slowUrl: `redis://:${PASSWORD}@127.0.0.1:${relay.port}`,
    get delayMs() {
      return relay.delayMs;
    },
    set delayMs(value) {
      relay.delayMs = value;
    },
    async [Symbol.asyncDispose]() {
      await relay[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    },
  };
}
