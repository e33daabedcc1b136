/**
 * A storm of logins from many addresses with many names, so that no limit per name or address is ever reached. Each
 * wrong password costs a hash; an attacker who can make a proxy hash endlessly has stopped its logins, or all of it.
 * Here hashing has separate threads and a short queue, and all strangers share a budget of failures: once it is used
 * up, each of them waits a moment. Names on networks that they have logged in from have reserved queue places; a
 * stranger from a network without failures comes before those who cause the storm; and requests with a token are not
 * affected.
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

/** Sends concurrent wrong passwords, each with another name from another address. */
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

/** Starts Sallyport with a budget for all failures, behind a trusted proxy. */
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

  it("limits the cost of strangers, and serves known users", async () => {
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

    // Neither attempts in progress when the budget ran out nor those refused by the queue change the number of failures;
    // a refill takes 1h / 20.
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

    // Now a known user can log in from the known network; strangers, and the known user elsewhere, must wait.
    expect((await askLogin(gate, ALICE, from(HOME))).status).toBe(200);
    expect((await askLogin(gate, CAROL, from(HOME))).status).toBe(429);
    expect((await askLogin(gate, ALICE, from("192.0.2.2"))).status).toBe(429);
  });

  it("computes no hash for refused attempts", async () => {
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

  it("accepts a stranger with the right password after the time in Retry-After", async () => {
    const { gate } = standing();
    // On a slow machine, the budget refills during the storm.
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
  /** The wait after a refusal, which leaves CPU time for the passwords of others. */
  const AGAIN_MS = 20;

  it("accepts known users, and strangers from networks without failures", async () => {
    const { gate } = standing();
    expect((await askLogin(gate, ALICE, from(HOME))).status).toBe(200);

    const stopped = new AbortController();
    const agent = new Agent({ keepAlive: true, maxSockets: ATTACKERS });
    onTestFinished(() => agent.destroy());
    /** Attackers that send wrong logins one after the other, each with a new name, and their statuses. */
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
    /** Whether each attacker has failed, and there are more than can be served. */
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
  it("hashes for every attempt", async () => {
    await using login = await startNaiveLogin({
      users: Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`nobody1-${i}`, ALICE])),
      lock: "name",
    });
    const answers = await storm(login, 30, 1);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 401));
  });
});
