/**
 * Guessing passwords, and locking users out by guessing. A login without a limit reveals weak passwords; one that locks
 * the name after some failures lets anyone lock out anyone; one that counts by an address that the client can choose
 * (`X-Forwarded-For`) has no limit at all. Here failures count per name and network (an IPv6 /64), per network across
 * all names, and per name across all networks, where after 100 in a row (NIST SP 800-63B §5.2.2) unknown networks get
 * three tries each. The owner can log in from any network without guesses.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, ask, askLogin, fieldsOf } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { logLine } from "../../support/log-line.ts";
import { startNaiveLogin } from "../../support/naive-login.ts";
import { use } from "../../support/pair.ts";
import type { Peer } from "../../support/raw-client.ts";
import {
  ALICE,
  cheapHash,
  type ConfigParts,
  type Sallyport,
  startSallyport,
} from "../../support/sallyport.ts";

const NAMES = ["alice", "bob", "carol", "dave", "erin", "frank"] as const;
const passwordOf = (name: string): string => (name === "alice" ? ALICE.password : `${name}'s own`);
const users = Object.fromEntries(
  NAMES.map((name) => [name, { password: cheapHash(passwordOf(name)) }]),
);
const files = { "users.yaml": JSON.stringify({ users }) };

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

/** Logs in through a proxy as a client with this address, with the right or a wrong password. */
function attempt(peer: Peer, address: string, username: string, right: boolean): Promise<Answer> {
  const password = right ? passwordOf(username) : "wrong";
  return askLogin(peer, { username, password }, { "x-forwarded-for": address });
}

async function statusOf(...login: Parameters<typeof attempt>): Promise<number> {
  return (await attempt(...login)).status;
}

/** Sends `count` wrong passwords one after the other. @returns the statuses. */
async function guesses(
  peer: Peer,
  count: number,
  of: (index: number) => readonly [address: string, username: string],
): Promise<number[]> {
  const statuses: number[] = [];
  for (let index = 0; index < count; index++) {
    statuses.push(await statusOf(peer, ...of(index), false));
  }
  return statuses;
}

const times = (count: number, status: number): number[] =>
  Array.from({ length: count }, () => status);

async function expectThrottled(gate: Sallyport, answer: Answer, reason: string): Promise<void> {
  expect(answer.status).toBe(429);
  const { id, message, success } = fieldsOf(answer);
  expect([typeof message, success]).toEqual(["string", false]);
  expect(answer.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
  expect(answer.headers["cache-control"]).toBe("no-store");
  expect(await logLine(gate, { id })).toMatchObject({ reason, status: 429 });
}

function useGate(config: ConfigParts) {
  return use(
    async () => ({ url: backend.url, [Symbol.asyncDispose]: () => Promise.resolve() }),
    (target) => startSallyport({ target, files, config }),
  );
}

/** All requests come through a trusted proxy. */
const trustedProxies = ["127.0.0.0/8"];

describe("Sallyport behind a trusted proxy", () => {
  const standing = useGate({ server: { trustedProxies } });

  it("bans only this name from this address", async () => {
    const { gate } = standing();
    const guessed = await guesses(gate, 7, () => ["198.51.100.1", "bob"]);
    expect(guessed).toEqual([...times(5, 401), ...times(2, 429)]);
    const banned = await attempt(gate, "198.51.100.1", "bob", true);
    await expectThrottled(gate, banned, "throttled");
    expect(Number(banned.headers["retry-after"])).toBeGreaterThan(270);
    expect(Number(banned.headers["retry-after"])).toBeLessThanOrEqual(300);
    expect(await statusOf(gate, "198.51.100.2", "bob", true)).toBe(200);
    expect(await statusOf(gate, "198.51.100.1", "alice", true)).toBe(200);
    // The owner's login elsewhere does not lift the ban of the guesser.
    expect(await statusOf(gate, "198.51.100.1", "bob", true)).toBe(429);
  });

  it("treats a /64 as one address, even with concurrent attempts", async () => {
    const { gate } = standing();
    const statuses = await Promise.all(
      Array.from({ length: 24 }, (_, host) =>
        statusOf(gate, `2001:db8:0:1::${(host + 1).toString(16)}`, "carol", false),
      ),
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(statuses.filter((status) => status === 429)).toHaveLength(19);
    expect(await statusOf(gate, "2001:db8:0:1:ffff::1", "carol", true)).toBe(429);
    expect(await statusOf(gate, "2001:db8:0:2::1", "carol", true)).toBe(200);
  });

  it("clears only the failures of this name and address after a right password", async () => {
    const { gate } = standing();
    const [one, two] = ["198.51.100.11", "198.51.100.12"] as const;
    await guesses(gate, 8, (index) => [index < 4 ? one : two, "dave"]);
    expect(await statusOf(gate, one, "dave", true)).toBe(200);
    expect(await guesses(gate, 4, () => [one, "dave"])).toEqual(times(4, 401));
    expect(await guesses(gate, 2, () => [two, "dave"])).toEqual([401, 429]);
  });

  it("counts for the client address from the proxy, not for forged ones before it", async () => {
    const { gate } = standing();
    const guessed = await guesses(gate, 6, (index) => [
      `203.0.113.${index}, 198.51.100.21`,
      "erin",
    ]);
    expect(guessed).toEqual([...times(5, 401), 429]);
    expect(await statusOf(gate, "203.0.113.1", "erin", true)).toBe(200);
    expect(await statusOf(gate, "198.51.100.21, 198.51.100.22", "erin", true)).toBe(200);
  });

  it("accepts tokens from a banned address", async () => {
    const { gate } = standing();
    await guesses(gate, 6, () => ["198.51.100.31", "frank"]);
    const headers = { "x-forwarded-for": "198.51.100.31" };
    expect((await ask(gate, "/x", { token: gate.token, headers })).status).toBe(200);
  });
});

describe("Sallyport with limits for an address and for a name", () => {
  const throttle = { address: { attempts: 8 }, account: { attempts: 12 } };
  const standing = useGate({ server: { trustedProxies }, login: { throttle } });

  it("bans only an address that tries many names, and for all names", async () => {
    const { gate } = standing();
    const guessed = await guesses(gate, 10, (index) => ["198.51.100.1", `somebody${index}`]);
    expect(guessed).toEqual([...times(8, 401), ...times(2, 429)]);
    await expectThrottled(
      gate,
      await attempt(gate, "198.51.100.1", "alice", true),
      "throttled_address",
    );
    expect(await statusOf(gate, "198.51.100.2", "alice", true)).toBe(200);
  });

  it("guards a name that many addresses guess, and lets its owner in", async () => {
    const { gate } = standing();
    const [home, abroad] = ["192.0.2.1", "203.0.113.1"] as const;
    expect(await statusOf(gate, home, "bob", true)).toBe(200);
    const guessed = await guesses(gate, 12, (index) => [`198.51.100.${100 + (index >> 2)}`, "bob"]);
    expect(guessed).toEqual(times(12, 401));
    // The guessers are banned for a day; a new one gets three tries.
    const refused = await attempt(gate, "198.51.100.100", "bob", true);
    await expectThrottled(gate, refused, "throttled_account");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(86_000);
    const more = await guesses(gate, 5, () => ["198.51.100.110", "bob"]);
    expect(more).toEqual([...times(3, 401), ...times(2, 429)]);
    // The owner mistypes at home and still gets in, and abroad as well.
    expect(await guesses(gate, 4, () => [home, "bob"])).toEqual(times(4, 401));
    expect(await statusOf(gate, home, "bob", true)).toBe(200);
    expect(await statusOf(gate, abroad, "bob", true)).toBe(200);
    expect(await statusOf(gate, "198.51.100.100", "carol", true)).toBe(200);
  });
});

describe("Sallyport with two threads", () => {
  const standing = useGate({ server: { trustedProxies, workers: 2 } });

  it("shares one throttle", async () => {
    const { gate } = standing();
    const statuses = await Promise.all(
      Array.from({ length: 24 }, () => statusOf(gate, "2001:db8:0:1::1", "carol", false)),
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(await guesses(gate, 6, () => ["2001:db8:0:1::2", "carol"])).toEqual(times(6, 429));
    expect(await statusOf(gate, "2001:db8:0:2::1", "carol", true)).toBe(200);
  });
});

describe("Sallyport without a trusted proxy", () => {
  const standing = useGate({});

  it("ignores addresses in headers from the client", async () => {
    const { gate } = standing();
    const guessed = await guesses(gate, 6, (index) => [`203.0.113.${index}`, "bob"]);
    expect(guessed).toEqual([...times(5, 401), 429]);
    const forged = { forwarded: "for=203.0.113.9", "x-real-ip": "203.0.113.9" };
    const login = { username: "bob", password: passwordOf("bob") };
    expect((await askLogin(gate, login, forged)).status).toBe(429);
  });
});

describe("a naive login", () => {
  const naive = { bob: { password: passwordOf("bob") } };

  it("that locks names lets a stranger lock the owner out", async () => {
    await using login = await startNaiveLogin({ users: naive, lock: "name" });
    await guesses(login, 5, () => ["198.51.100.1", "bob"]);
    expect(await statusOf(login, "198.51.100.2", "bob", true)).toBe(429);
  });

  it("that trusts the client's address has no limit", async () => {
    await using login = await startNaiveLogin({ users: naive, lock: "address" });
    const guessed = await guesses(login, 12, (index) => [
      `203.0.113.${index}, 198.51.100.1`,
      "bob",
    ]);
    expect(guessed).toEqual(times(12, 401));
    expect(await guesses(login, 7, () => ["198.51.100.9", "bob"])).toContain(429);
  });
});
