/**
 * Guessing, and locking somebody out by guessing. A login without a limit gives away weak passwords; one that locks the
 * name after some failures lets everybody lock everybody out; one that counts by an address that the client may choose
 * (`X-Forwarded-For`) has no limit at all. Here failures count for a name and a network (/64 of IPv6) together, for a network
 * over all names, and for a name over all networks, where after 100 in a row (NIST SP 800-63B §5.2.2) strange networks get
 * three tries each. The owner gets in from wherever nobody has been guessing.
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

/** One login as it comes through a proxy from this address, with the right password or a wrong one. */
function attempt(peer: Peer, address: string, username: string, right: boolean): Promise<Answer> {
  const password = right ? passwordOf(username) : "wrong";
  return askLogin(peer, { username, password }, { "x-forwarded-for": address });
}

async function statusOf(...login: Parameters<typeof attempt>): Promise<number> {
  return (await attempt(...login)).status;
}

/** The statuses of so many wrong passwords, one after the other. */
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

/** Everything comes through a proxy that is trusted. */
const trustedProxies = ["127.0.0.0/8"];

describe("Sallyport behind a trusted proxy", () => {
  const standing = useGate({ server: { trustedProxies } });

  it("bans a name from an address, and nobody else anywhere else", async () => {
    const { gate } = standing();
    const guessed = await guesses(gate, 7, () => ["198.51.100.1", "bob"]);
    expect(guessed).toEqual([...times(5, 401), ...times(2, 429)]);
    const banned = await attempt(gate, "198.51.100.1", "bob", true);
    await expectThrottled(gate, banned, "throttled");
    expect(Number(banned.headers["retry-after"])).toBeGreaterThan(270);
    expect(Number(banned.headers["retry-after"])).toBeLessThanOrEqual(300);
    expect(await statusOf(gate, "198.51.100.2", "bob", true)).toBe(200);
    expect(await statusOf(gate, "198.51.100.1", "alice", true)).toBe(200);
    // What the owner does elsewhere does not free the one who guesses.
    expect(await statusOf(gate, "198.51.100.1", "bob", true)).toBe(429);
  });

  it("takes a /64 for one address, also when all come at once", async () => {
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

  it("clears with a right password what that address did to that name, and nothing more", async () => {
    const { gate } = standing();
    const [one, two] = ["198.51.100.11", "198.51.100.12"] as const;
    await guesses(gate, 8, (index) => [index < 4 ? one : two, "dave"]);
    expect(await statusOf(gate, one, "dave", true)).toBe(200);
    expect(await guesses(gate, 4, () => [one, "dave"])).toEqual(times(4, 401));
    expect(await guesses(gate, 2, () => [two, "dave"])).toEqual([401, 429]);
  });

  it("counts for the client that the proxy names, not for what that client writes in front", async () => {
    const { gate } = standing();
    const guessed = await guesses(gate, 6, (index) => [
      `203.0.113.${index}, 198.51.100.21`,
      "erin",
    ]);
    expect(guessed).toEqual([...times(5, 401), 429]);
    expect(await statusOf(gate, "203.0.113.1", "erin", true)).toBe(200);
    expect(await statusOf(gate, "198.51.100.21, 198.51.100.22", "erin", true)).toBe(200);
  });

  it("lets those who have a token go on while their address is banned", async () => {
    const { gate } = standing();
    await guesses(gate, 6, () => ["198.51.100.31", "frank"]);
    const headers = { "x-forwarded-for": "198.51.100.31" };
    expect((await ask(gate, "/x", { token: gate.token, headers })).status).toBe(200);
  });
});

describe("Sallyport with limits for an address and for a name", () => {
  const throttle = { address: { attempts: 8 }, account: { attempts: 12 } };
  const standing = useGate({ server: { trustedProxies }, login: { throttle } });

  it("bans an address that tries many names, for all names, and only that address", async () => {
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

  it("guards a name that many addresses guess at, and lets its owner in", async () => {
    const { gate } = standing();
    const [home, abroad] = ["192.0.2.1", "203.0.113.1"] as const;
    expect(await statusOf(gate, home, "bob", true)).toBe(200);
    const guessed = await guesses(gate, 12, (index) => [`198.51.100.${100 + (index >> 2)}`, "bob"]);
    expect(guessed).toEqual(times(12, 401));
    // Those who guessed are out, for a day; a new one has three tries and no more.
    const refused = await attempt(gate, "198.51.100.100", "bob", true);
    await expectThrottled(gate, refused, "throttled_account");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(86_000);
    const more = await guesses(gate, 5, () => ["198.51.100.110", "bob"]);
    expect(more).toEqual([...times(3, 401), ...times(2, 429)]);
    // The owner mistypes at home, and gets in; abroad, too.
    expect(await guesses(gate, 4, () => [home, "bob"])).toEqual(times(4, 401));
    expect(await statusOf(gate, home, "bob", true)).toBe(200);
    expect(await statusOf(gate, abroad, "bob", true)).toBe(200);
    expect(await statusOf(gate, "198.51.100.100", "carol", true)).toBe(200);
  });
});

describe("Sallyport with two threads", () => {
  const standing = useGate({ server: { trustedProxies, workers: 2 } });

  it("has one throttle", async () => {
    const { gate } = standing();
    const statuses = await Promise.all(
      Array.from({ length: 24 }, () => statusOf(gate, "2001:db8:0:1::1", "carol", false)),
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(5);
    expect(await guesses(gate, 6, () => ["2001:db8:0:1::2", "carol"])).toEqual(times(6, 429));
    expect(await statusOf(gate, "2001:db8:0:2::1", "carol", true)).toBe(200);
  });
});

describe("Sallyport without a proxy in front", () => {
  const standing = useGate({});

  it("does not believe an address that the client writes", async () => {
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

  it("that believes the client's address has no limit", async () => {
    await using login = await startNaiveLogin({ users: naive, lock: "address" });
    const guessed = await guesses(login, 12, (index) => [
      `203.0.113.${index}, 198.51.100.1`,
      "bob",
    ]);
    expect(guessed).toEqual(times(12, 401));
    expect(await guesses(login, 7, () => ["198.51.100.9", "bob"])).toContain(429);
  });
});
