/**
 * A state server that lost its latest writes: it was killed, and restored an older snapshot, or a standby without these took over its
 * address. It looks as before, but a replica that starts later would accept tokens that are logged out.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keysCommand } from "../cli/command.ts";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { ALICE, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { REDIS_PROGRAMS, type RedisNode, startRedisNode } from "./redis-node.ts";
import { redisMissing } from "./redis-server.ts";
import { logInAt } from "./replicas.ts";

const stack = new AsyncDisposableStack();
let redis: RedisNode;
let start: () => Promise<Sallyport>;

beforeAll(async () => {
  if (redisMissing !== undefined) return;
  redis = stack.use(
    await startRedisNode({
      program: REDIS_PROGRAMS[0] ?? "",
      args: (port, directory) => [
        ...["--port", String(port), "--bind", "127.0.0.1", "--dir", directory],
        ...["--save", "3600 1", "--appendonly", "no"],
      ],
    }),
  );
  const backend = stack.use(await startEchoBackend());
  const directory = stack.adopt(await temporaryDirectory(), (each) => each.close());
  const keys = join(directory.path, "keys");
  await keysCommand("generate", "-d", keys);
  start = async () =>
    stack.use(
      await startSallyport({
        target: backend.url,
        config: {
          server: { tls: "off", trustedProxies: ["127.0.0.1/32"] },
          tokens: { keys, revocation: { logout: true } },
          shared: { kind: "redis", url: `redis://127.0.0.1:${redis.port}` },
        },
      }),
    );
}, 60_000);
afterAll(() => stack.disposeAsync());

test.skipIf(redisMissing !== undefined)(
  `a token whose logout the state server lost is refused by a replica that starts later ${redisMissing ?? ""}`,
  { timeout: 60_000 },
  async () => {
    const gate = await start();
    const up = async (): Promise<boolean> =>
      (await scrape(gate)).value("sallyport_shared_state_up") === 1;
    await until(up);
    const logOut = async (): Promise<string> => {
      const { token } = await logInAt(gate, ALICE.username);
      const { status } = await ask(gate, "/api/logout", { method: "POST", token });
      expect(status).toBe(200);
      return token;
    };
    const before = await logOut();
    // Until it has read its own event.
    await pause(500);
    await redis.command("SAVE");
    const lost = await logOut();
    await pause(500);
    await redis.kill();
    await until(async () => !(await up()));
    await redis.start();
    await until(up, 20_000);
    await until(async () => Number(await redis.command("ZCARD", "{sallyport:}revocations")) === 2);
    const later = await start();
    for (const token of [before, lost]) {
      expect((await ask(later, "/x", { token })).status).toBe(401);
    }
  },
);

test.skipIf(redisMissing !== undefined)(
  `a logout that nobody had read when the state server lost its data is told again ${redisMissing ?? ""}`,
  { timeout: 60_000 },
  async () => {
    const [one, other] = [await start(), await start()];
    const logOut = async (): Promise<string> => {
      const { token } = await logInAt(one, ALICE.username);
      expect((await ask(one, "/api/logout", { method: "POST", token })).status).toBe(200);
      return token;
    };
    const statusAt = async (gate: Sallyport, token: string): Promise<number> =>
      (await ask(gate, "/x", { token })).status;
    const known = await logOut();
    await until(async () => (await statusAt(other, known)) === 401);
    other.signal("SIGSTOP");
    const unread = await logOut();
    one.signal("SIGSTOP");
    await redis.kill();
    await redis.start();
    await redis.command("FLUSHALL");
    other.signal("SIGCONT");
    const filled = () => redis.command("GET", "{sallyport:}filled");
    await until(async () => (await filled()) !== null, 20_000);
    one.signal("SIGCONT");
    await until(async () => (await statusAt(other, unread)) === 401, 10_000);
  },
);
