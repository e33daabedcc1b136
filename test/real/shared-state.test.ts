import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { command, keysCommand } from "../cli/command.ts";
import { ask } from "../support/ask.ts";
import { missing } from "../support/program.ts";
import { ALICE, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { REDIS_PROGRAMS } from "./redis-node.ts";
import { redisMissing, type RedisServer, startRedis } from "./redis-server.ts";
import { logInAt, type Replicas, startReplicas, underLoad } from "./replicas.ts";

const reason = redisMissing ?? missing("nginx");
const ATTEMPTS = 5;
const BURST = 30;
const AT_ONCE = 3;

/** One kind of server each, if both are installed. */
const SUBJECTS = [
  { program: REDIS_PROGRAMS.at(0), workers: 1 },
  { program: REDIS_PROGRAMS.at(-1), workers: 2 },
];
const title = `three replicas with $workers workers and $program behind nginx ${reason ?? ""}`;

describe.skipIf(reason !== undefined).each(SUBJECTS)(title, ({ program, workers }) => {
  let redis: RedisServer;
  let replicas: Replicas;
  /** Never revoked. */
  let token: string;
  let names = 0;
  const nextName = (): string => `user${(names += 1)}`;
  const gates = (): readonly [Sallyport, Sallyport, Sallyport] =>
    replicas.gates as unknown as [Sallyport, Sallyport, Sallyport];

  beforeAll(async () => {
    redis = await startRedis(program);
    replicas = await startReplicas(
      {
        shared: { kind: "redis", url: redis.slowUrl },
        routes: [
          { name: "public", path: "/public/", auth: "none", upstream: "app" },
          {
            name: "limited",
            path: "/limited",
            upstream: "app",
            rateLimit: { requests: BURST, within: "10m" },
          },
          {
            name: "few",
            path: "/few",
            upstream: "app",
            concurrency: { requests: AT_ONCE, by: "subject" },
          },
          { name: "everything", path: "/", upstream: "app" },
        ],
      },
      workers,
    );
    ({ token } = await logInAt(replicas.front, ALICE.username));
  }, 60_000);
  afterAll(async () => {
    await replicas?.[Symbol.asyncDispose]();
    await redis?.[Symbol.asyncDispose]();
  });

  const statusAt = async (
    { port }: { readonly port: number },
    bearer: string,
    path = "/orders",
  ): Promise<number> => (await ask({ port }, path, { token: bearer })).status;
  const logOut = ({ port }: Sallyport, bearer: string) =>
    ask({ port }, "/api/logout", { method: "POST", token: bearer });
  const up = async (gate: Sallyport): Promise<number | undefined> =>
    (await scrape(gate)).value("sallyport_shared_state_up");
  const allUp = async (wanted: number): Promise<boolean> =>
    (await Promise.all(gates().map(up))).every((value) => value === wanted);

  /** Milliseconds from a logout at the first replica until all others refuse the token. */
  async function revocationMs(): Promise<number> {
    const [first, ...others] = gates();
    const { token: ended } = await logInAt(first, ALICE.username);
    for (const gate of others) expect(await statusAt(gate, ended)).toBe(200);
    const began = performance.now();
    expect((await logOut(first, ended)).status).toBe(200);
    await until(async () => {
      const statuses = await Promise.all(others.map((gate) => statusAt(gate, ended)));
      return statuses.every((status) => status === 401);
    });
    return performance.now() - began;
  }

  test("share the counts of failed logins, also with a replica that starts later", async () => {
    const name = nextName();
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const gate = gates()[attempt % 3] as Sallyport;
      expect((await logInAt(gate, name, "wrong")).status).toBe(401);
      await pause(200);
    }
    for (const gate of gates()) {
      await until(async () => (await logInAt(gate, name)).status === 429);
      expect((await logInAt(gate, name, ALICE.password, "198.51.100.7")).status).toBe(200);
    }
    await replicas.restart(0);
    expect((await logInAt(gates()[0], name)).status).toBe(429);
  });

  test("a burst at all replicas gets at most as many guesses as each of them allows alone", async () => {
    const name = nextName();
    const guesses = Array.from({ length: 60 }, () => logInAt(replicas.front, name, "wrong"));
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
    expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(3 * ATTEMPTS);
    await pause(500);
    for (const gate of gates()) expect((await logInAt(gate, name)).status).toBe(429);
  });

  test("a token that is logged out at one replica is refused by all within a second, even after a restart", async () => {
    expect(await revocationMs()).toBeLessThan(1_000);
    const { token: ended } = await logInAt(gates()[1], ALICE.username);
    await logOut(gates()[1], ended);
    await replicas.restart(2);
    expect(await statusAt(gates()[2], ended)).toBe(401);
  });

  test("share the rate limit of a caller", async () => {
    const { token: caller } = await logInAt(replicas.front, nextName());
    const statuses: number[] = [];
    while (statuses.length < 3 * BURST) {
      statuses.push(await statusAt(replicas.front, caller, "/limited"));
      await pause(10);
    }
    const allowed = statuses.filter((status) => status === 200).length;
    expect(allowed).toBeGreaterThanOrEqual(BURST);
    // At 100 per second, each of the two others passes ten before it learns of the rest; more on a busy machine.
    expect(allowed).toBeLessThanOrEqual(2 * BURST);
    await pause(500);
    // A worker without any of these requests for a while learns of the others with its first.
    for (const gate of gates()) {
      await until(async () => (await statusAt(gate, caller, "/limited")) === 429);
    }
  });

  test("share the concurrency limit of a caller", async () => {
    const { token: caller } = await logInAt(replicas.front, nextName());
    const { token: another } = await logInAt(replicas.front, nextName());
    const [first, ...others] = gates();
    const few = (gate: Sallyport, bearer = caller) => statusAt(gate, bearer, "/few/x");
    const held = Array.from({ length: AT_ONCE }, () =>
      statusAt(first, caller, "/few/slow?ms=6000"),
    );
    for (const gate of others) await until(async () => (await few(gate)) === 429, 5_000);
    for (const gate of gates()) expect(await few(gate, another)).toBe(200);
    expect(await Promise.all(held)).toEqual(held.map(() => 200));
    for (const gate of gates()) await until(async () => (await few(gate)) === 200, 5_000);
  });

  const FAULTS: Record<string, { harm(): Promise<void>; heal(): Promise<void>; down: boolean }> = {
    killed: { harm: () => redis.kill(), heal: () => redis.start(), down: true },
    hung: {
      harm: async () => redis.signal("SIGSTOP"),
      heal: async () => redis.signal("SIGCONT"),
      down: true,
    },
    "full of memory": {
      async harm() {
        await redis.command("CONFIG", "SET", "maxmemory", "1");
      },
      async heal() {
        await redis.command("CONFIG", "SET", "maxmemory", "0");
      },
      down: true,
    },
    slow: {
      harm: async () => void (redis.delayMs = 200),
      heal: async () => void (redis.delayMs = 0),
      down: false,
    },
    emptied: {
      async harm() {
        await redis.command("FLUSHALL");
      },
      heal: async () => undefined,
      down: false,
    },
  };

  test.each(Object.entries(FAULTS))(
    "while the state server is %s, no request with a token fails or waits",
    { timeout: 60_000 },
    async (_, { harm, heal, down }) => {
      const [first, second, third] = gates();
      const warnings = () =>
        first.log().filter(({ msg }) => String(msg).includes("state server cannot be used"));
      const before = warnings().length;
      const name = nextName();
      const { token: ended } = await logInAt(second, ALICE.username);
      const logouts: number[] = [];
      const { statuses, slowestMs } = await underLoad(replicas.front, token, async () => {
        await harm();
        if (down) {
          await logInAt(first, name, "wrong");
          await until(() => allUp(0), 20_000);
        }
        const began = performance.now();
        expect((await logOut(second, ended)).status).toBe(200);
        logouts.push(performance.now() - began);
        expect(await statusAt(second, ended)).toBe(401);
        for (const gate of gates()) expect((await logInAt(gate, name)).status).toBe(200);
        await pause(300);
        await heal();
        await until(() => allUp(1), 20_000);
        // Revocations during the outage take effect everywhere, and new ones take effect within a second.
        await until(async () => (await statusAt(third, ended)) === 401);
        expect(await revocationMs()).toBeLessThan(1_000);
      });
      expect(Object.keys(statuses)).toEqual(["200"]);
      // 50 ms is the configured timeout; the rest is up to the machine.
      expect(logouts[0]).toBeLessThan(1_000);
      expect(slowestMs).toBeLessThan(2_000);
      // Once per outage, and at most once in ten seconds.
      expect(warnings().length - before).toBeLessThanOrEqual(down ? 1 : 0);
    },
  );

  test("doctor reports the state of the server, and why it cannot be used", async () => {
    const file = join(gates()[0].directory, "config.yaml");
    const sound = await command(["doctor", "--config", file]);
    expect(sound.out).toMatch(/redis: (?:Redis|Valkey) \d[\d.]* answers in \d+ ms/);
    await redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    expect((await command(["doctor", "--config", file])).out).toContain("set maxmemory-policy");
    await redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction");
    const text = await readFile(file, "utf8");
    const wrong = join(gates()[0].directory, "wrong.yaml");
    await writeFile(wrong, text.replace("of-the-test@", "hunter22@"));
    const ill = await command(["doctor", "--config", wrong]);
    expect(ill.out).toContain("redis: cannot be used: WRONGPASS");
    expect(ill.out + ill.err).not.toContain("hunter22");
    expect(ill.code).toBe(1);
  });

  test("the start and the end of an outage are logged once each", () => {
    const countOf = (text: string) =>
      gates()[1]
        .log()
        .filter(({ msg }) => String(msg).includes(text)).length;
    expect(countOf("state server cannot be used")).toBeGreaterThan(0);
    expect(countOf("state server can be used again")).toBe(countOf("state server cannot be used"));
  });

  test("an emptied server is filled again, so that a replica that starts later knows the revocations", async () => {
    const { token: ended } = await logInAt(gates()[0], ALICE.username);
    await logOut(gates()[0], ended);
    await redis.command("FLUSHALL");
    const held = async () => Number(await redis.command("ZCARD", "{sallyport:}revocations"));
    await until(async () => (await held()) > 0, 20_000);
    await replicas.restart(1);
    expect(await statusAt(gates()[1], ended)).toBe(401);
  });

  test("key rotation and a rolling restart under load lose no request", async () => {
    const { statuses } = await underLoad(replicas.front, token, async () => {
      await keysCommand("rotate", "-d", replicas.keys, "--lifetime", "5h");
      for (const place of [0, 1, 2]) await replicas.restart(place);
      const { token: later } = await logInAt(gates()[0], ALICE.username);
      await until(async () => (await statusAt(gates()[2], later)) === 200);
    });
    expect(Object.keys(statuses)).toEqual(["200"]);
    expect(await revocationMs()).toBeLessThan(1_000);
  });

  test("nothing on the server reveals a name, an address or a token", async () => {
    await logInAt(gates()[0], nextName(), "wrong", "203.0.113.9");
    await pause(300);
    const held = [];
    for (const key of (await redis.command("KEYS", "*")) as string[]) {
      const type = await redis.command("TYPE", key);
      held.push(key, type === "stream" ? await redis.command("XRANGE", key, "-", "+") : "");
      // Everything expires, except the markers for an emptied server.
      if (!/mark$|filled$/.test(key)) expect(await redis.command("PTTL", key)).toBeGreaterThan(0);
    }
    expect(held.length).toBeGreaterThan(4);
    expect(JSON.stringify(held)).not.toMatch(/user\d|alice|192\.0\.2|203\.0\.113|eyJ/);
  });
});
