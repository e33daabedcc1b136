/**
 * A storm of logins, from many addresses with many names, so that no limit by name or address is ever reached. Each wrong
 * password costs a hash; whoever can make a proxy hash without end has stopped its logins, or all of it. Here hashing has
 * threads of its own and a short queue, and all strangers together have a budget of failures: when it is used up they wait,
 * a moment each. Names on networks that they have logged in from have places and turns of their own; a stranger from where
 * nothing failed comes before those who cause the storm; and everybody with a token goes on.
 */
import { Agent } from "node:https";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Answer, ask, askLogin } from "../../support/ask.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { startNaiveLogin } from "../../support/naive-login.ts";
import { use } from "../../support/pair.ts";
import type { Peer } from "../../support/raw-client.ts";
import { ALICE, cheapHash, type ConfigParts, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const BUDGET = 20;
const QUEUE = 8;
const CONCURRENCY = 2;
const HOME = "192.0.2.1";
const CAROL = { username: "carol", password: "carol's own" };
const users = {
  alice: { password: cheapHash(ALICE.password) },
  carol: { password: cheapHash(CAROL.password) },
};

const from = (address: string): Record<string, string> => ({ "x-forwarded-for": address });

/** Wrong passwords, all at once, each with another name from another address. */
function storm(peer: Peer, count: number, round: number): Promise<Answer[]> {
  return Promise.all(
    Array.from({ length: count }, (_, index) =>
      askLogin(
        peer,
        { username: `nobody${round}-${index}`, password: "wrong" },
        from(`10.${round}.${index >> 8}.${index & 255}`),
      ),
    ),
  );
}

/** Sallyport with a budget for all failures, behind a proxy that it trusts. */
function useBudget(attempts: number, within: string, hashing: ConfigParts = {}) {
  const throttle = { global: { attempts, within } };
  return use(
    () => startEchoBackend(),
    (target) =>
      startSallyport({
        target,
        files: { "users.yaml": JSON.stringify({ users }) },
        config: {
          server: { trustedProxies: ["127.0.0.0/8"] },
          login: { throttle, hashing },
        },
      }),
  );
}

describe("Sallyport", () => {
  const standing = useBudget(BUDGET, "1h", { concurrency: CONCURRENCY, queue: QUEUE });

  it("bounds what strangers cost, and serves those it knows", async () => {
    const { gate } = standing();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    expect((await askLogin(gate, ALICE, from(HOME))).status).toBe(200);

    const raging = new AbortController();
    const withToken: number[] = [];
    const traffic = (async () => {
      while (!raging.signal.aborted)
        withToken.push((await ask(gate, "/x", { token: gate.token, agent })).status);
    })();
    const answers: Answer[] = [];
    for (let round = 0; round < 6; round++) answers.push(...(await storm(gate, 30, round)));
    raging.abort();
    await traffic;

    // No more by those that were under way when the budget ended, and no fewer by those that had no place in the queue;
    // 1h / 20 is a long time for another.
    const failed = answers.filter(({ status }) => status === 401).length;
    expect(failed).toBeGreaterThanOrEqual(BUDGET);
    expect(failed).toBeLessThanOrEqual(BUDGET + 1);
    const refused = answers.filter(({ status }) => status !== 401);
    expect(new Set(refused.map(({ status }) => status))).toContain(429);
    for (const { status, headers } of refused) {
      expect([429, 503]).toContain(status);
      expect(headers["retry-after"]).toMatch(/^[1-9]\d*$/);
    }
    expect(withToken.length).toBeGreaterThan(0);
    expect(new Set(withToken)).toEqual(new Set([200]));

    // Now: who is known logs in where they are known; a stranger, and the known one elsewhere, wait.
    expect((await askLogin(gate, ALICE, from(HOME))).status).toBe(200);
    expect((await askLogin(gate, CAROL, from(HOME))).status).toBe(429);
    expect((await askLogin(gate, ALICE, from("192.0.2.2"))).status).toBe(429);
  });

  it("computes nothing for what it refuses", async () => {
    const { gate } = standing();
    await until(async () => (await storm(gate, 30, 7)).every(({ status }) => status === 429));
    const before = await scrape(gate);
    const answers = await storm(gate, 60, 8);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 429));
    const after = await scrape(gate);
    const grown = (series: string): number =>
      Number(after.value(`sallyport_${series}`)) - Number(before.value(`sallyport_${series}`));
    expect(grown('logins_total{result="throttled"}')).toBe(60);
    expect(grown('logins_total{result="bad_credentials"}')).toBe(0);
    expect(after.value("sallyport_login_queue_length")).toBe(0);
  });
});

describe("Sallyport with a budget that refills soon", () => {
  const standing = useBudget(10, "10s");

  it("lets a stranger with the right password in after a moment, as Retry-After says", async () => {
    const { gate } = standing();
    // A machine that is slow enough refills it under the storm.
    let refused: Answer | undefined;
    let round = 0;
    await until(async () => {
      await storm(gate, 20, (round += 1));
      refused = await askLogin(gate, CAROL, from(`198.51.100.${round}`));
      return refused.status === 429;
    });
    expect(refused?.headers["retry-after"]).toBe("1");
    await until(async () => (await askLogin(gate, CAROL, from(HOME))).status === 200);
  });
});

describe("Sallyport in a storm from addresses that never stop", () => {
  const standing = useBudget(300, "1m", { concurrency: CONCURRENCY, queue: QUEUE });
  const ATTACKERS = 30;
  const LOGINS = 6;
  /** What is refused comes again so soon, and leaves the machine something for the passwords of others. */
  const AGAIN_MS = 20;

  it("logs in who is known, and who comes from where nothing failed", async () => {
    const { gate } = standing();
    expect((await askLogin(gate, ALICE, from(HOME))).status).toBe(200);

    const stopped = new AbortController();
    const agent = new Agent({ keepAlive: true, maxSockets: ATTACKERS });
    onTestFinished(() => agent.destroy());
    /** One wrong login after the other, each with a new name, and the statuses that they got. */
    const attackers = Array.from({ length: ATTACKERS }, (_, index) => {
      const answered = new Set<number>();
      const done = (async () => {
        for (let name = 0; !stopped.signal.aborted; name++) {
          const login = { username: `nobody${index}-${name}`, password: "wrong" };
          const { status } = await ask(gate, "/api/authenticate", {
            method: "POST",
            headers: { "content-type": "application/json", ...from(`10.9.0.${index}`) },
            body: JSON.stringify(login),
            agent,
          });
          answered.add(status);
          if (status !== 401) await delay(AGAIN_MS);
        }
      })();
      return { answered, done };
    });
    onTestFinished(() => stopped.abort());
    /** Each has failed, and it is more than can be served. */
    const rages = (): boolean =>
      attackers.every(({ answered }) => answered.has(401)) &&
      attackers.some(({ answered }) => answered.has(429) || answered.has(503));
    await until(rages, 60_000);

    const known: number[] = [];
    const strange: number[] = [];
    for (let count = 0; count < LOGINS; count++) {
      known.push((await askLogin(gate, ALICE, from(HOME))).status);
      strange.push((await askLogin(gate, CAROL, from(`203.0.113.${count}`))).status);
    }
    stopped.abort();
    await Promise.all(attackers.map(({ done }) => done));
    expect(known).toEqual(known.map(() => 200));
    expect(strange).toEqual(strange.map(() => 200));
  }, 120_000);
});

describe("a naive login", () => {
  it("hashes for everybody who asks", async () => {
    await using login = await startNaiveLogin({
      users: Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`nobody1-${i}`, ALICE])),
      lock: "name",
    });
    const answers = await storm(login, 30, 1);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 401));
  });
});
