import { expect, test } from "vitest";
import {
  FailureThrottle,
  type LoginThrottleLimits,
} from "../../src/credentials/throttle/login-throttle.ts";
import { heapInUse } from "../support/heap.ts";
import { oneByOne } from "./fixture.ts";

const MINUTE = 60_000;
const PAIR = { attempts: 5, within: 2 * MINUTE, ban: 5 * MINUTE };
const DAY = 24 * 60 * MINUTE;
const LIMITS = {
  ...PAIR,
  address: { ...PAIR, attempts: 50 },
  account: { attempts: 100, within: DAY },
  global: { attempts: 1_000_000, within: MINUTE },
};
const HOME = "192.0.2.1";

function throttle(limits: Partial<LoginThrottleLimits> = {}) {
  let time = 1_000_000;
  const made = oneByOne(
    new FailureThrottle({ ...LIMITS, ...limits }, { now: () => 0, monotonic: () => time }),
  );
  return {
    ...made,
    retryAfter: (username: string, client: string) =>
      made.refusal(username, client)?.retryAfter ?? 0,
    advance(milliseconds: number) {
      time += milliseconds;
    },
    fail(times: number, username: string, client: string) {
      for (let count = 0; count < times; count++) made.failed(username, client);
    },
  };
}

test("the fifth failure bans the name from that address, for as long as configured", () => {
  const login = throttle();
  login.fail(4, "alice", HOME);
  expect(login.retryAfter("alice", HOME)).toBe(0);
  login.fail(1, "alice", HOME);
  expect(login.retryAfter("alice", HOME)).toBe(300);
  login.advance(5 * MINUTE - 1);
  expect(login.retryAfter("alice", HOME)).toBe(1);
  login.advance(1);
  expect(login.retryAfter("alice", HOME)).toBe(0);
});

test("the count starts again after a ban", () => {
  const login = throttle();
  login.fail(5, "alice", HOME);
  login.advance(5 * MINUTE);
  login.fail(4, "alice", HOME);
  expect(login.retryAfter("alice", HOME)).toBe(0);
  login.fail(1, "alice", HOME);
  expect(login.retryAfter("alice", HOME)).toBe(300);
});

test("failures of attempts that began before a ban do not prolong it", () => {
  const login = throttle();
  const begun = Array.from({ length: 10 }, () => login.begin("alice", HOME));
  const fail = (some: typeof begun): void => {
    for (const attempt of some) if (!("limit" in attempt)) attempt.failed();
  };
  fail(begun.slice(0, 5));
  login.advance(MINUTE);
  fail(begun.slice(5));
  expect(login.retryAfter("alice", HOME)).toBe(240);
});

test("failures count within a sliding window", () => {
  const login = throttle();
  login.fail(1, "alice", HOME);
  login.advance(MINUTE);
  login.fail(3, "alice", HOME);
  login.advance(MINUTE + 1);
  login.fail(1, "alice", HOME);
  expect(login.retryAfter("alice", HOME)).toBe(0);
  login.fail(1, "alice", HOME);
  expect(login.retryAfter("alice", HOME)).toBe(300);
});

test("a stranger cannot lock the owner out from another address, nor other names from the same one", () => {
  const login = throttle();
  login.fail(5, "alice", "198.51.100.7");
  expect(login.retryAfter("alice", HOME)).toBe(0);
  expect(login.retryAfter("bob", "198.51.100.7")).toBe(0);
});

test("an address that tries many names is banned for all names, but no other address is", () => {
  const login = throttle();
  for (let index = 0; index < 49; index++) login.failed(`user${index}`, HOME);
  expect(login.retryAfter("alice", HOME)).toBe(0);
  login.failed("user49", HOME);
  expect(login.retryAfter("alice", HOME)).toBe(300);
  expect(login.retryAfter("alice", "192.0.2.2")).toBe(0);
});

test("a success clears the name at that address, but not the address's failures with other names", () => {
  const login = throttle();
  login.fail(4, "alice", HOME);
  login.succeeded("alice", HOME);
  login.fail(4, "alice", HOME);
  expect(login.retryAfter("alice", HOME)).toBe(0);

  for (let index = 0; index < 42; index++) {
    login.failed(`user${index}`, HOME);
    login.succeeded("mallory", HOME);
  }
  expect(login.retryAfter("mallory", HOME)).toBe(300);
});

test.each([
  ["2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true],
  ["2001:db8:1:2::1", "2001:0DB8:0001:0002::9", true],
  ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ["2001:db8::1", "2001:db8:0:0:1::", true],
  ["::1", "::2", true],
  ["::1", "1::", false],
  ["64:ff9b::192.0.2.1", "64:ff9b::198.51.100.1", true],
  ["fe80::1%eth0", "fe80::2%eth1", true],
  ["::ffff:192.0.2.1", "192.0.2.1", true],
  ["::ffff:192.0.2.1", "::ffff:192.0.2.2", false],
  ["192.0.2.1", "192.0.2.2", false],
])("%s and %s are one client: %s", (first, second, same) => {
  const login = throttle();
  login.fail(5, "alice", first);
  expect(login.retryAfter("alice", second) > 0).toBe(same);
});

test("name and address cannot be shifted into each other", () => {
  const login = throttle();
  login.fail(5, "b c", "a");
  expect(login.retryAfter("c", "a b")).toBe(0);
});

test("new limits keep the counts", () => {
  const login = throttle();
  login.fail(5, "alice", HOME);
  login.fail(3, "bob", HOME);
  login.succeeded("carol", HOME);
  const familiar = login.queueFor("carol", HOME);
  const pair = { attempts: 4, within: 3 * MINUTE, ban: 2 * MINUTE };
  login.change({ ...LIMITS, ...pair });
  expect(login.retryAfter("alice", HOME)).toBe(120);
  expect(login.queueFor("carol", HOME)).toEqual(familiar);
  expect(login.remaining("bob", HOME)).toBe(1);
  login.advance(2 * MINUTE + 1);
  login.fail(1, "bob", HOME);
  expect(login.retryAfter("bob", HOME)).toBe(120);
  // The longer duration applies only to new bans.
  login.change({ ...LIMITS, ...pair, ban: 60 * MINUTE });
  expect(login.retryAfter("bob", HOME)).toBe(120);
  // Five consecutive failures: alice is guarded now, and that address has used its attempts as an unknown network.
  login.change({ ...LIMITS, ...pair, account: { attempts: 5, within: DAY } });
  expect(login.refusal("alice", HOME)?.limit).toBe("account");
  login.change({ ...LIMITS, ...pair, account: { attempts: 5, within: MINUTE } });
  expect(login.refusal("alice", HOME)).toBeUndefined();
});

test("a smaller budget remembers what was spent from the larger one", () => {
  const login = throttle({ global: { attempts: 100, within: MINUTE } });
  for (let each = 0; each < 20; each += 1) login.failed(`user${each}`, `10.0.${each}.1`);
  expect(login.retryAfter("dora", "10.1.0.1")).toBe(0);
  login.change({ ...LIMITS, global: { attempts: 10, within: MINUTE } });
  expect(login.refusal("dora", "10.1.0.1")?.limit).toBe("global");
});

test("with less room, the latest failures are remembered", () => {
  const login = throttle({ attempts: 1 });
  const failed = (index: number): [string, string] => [
    `user${index}`,
    `10.0.${index >> 8}.${index & 255}`,
  ];
  for (let index = 0; index < 2_000; index += 1) login.failed(...failed(index));
  login.change({ ...LIMITS, attempts: 1_000_000 });
  expect(login.retryAfter(...failed(0))).toBe(0);
  expect(login.retryAfter(...failed(1_999))).toBe(300);
});

test("memory is bounded: the oldest failures are forgotten, the latest are kept", () => {
  const login = throttle();
  login.fail(5, "alice", HOME);
  login.fail(4, "bob", "192.0.2.9");
  for (let index = 0; index < 50_000; index++) {
    if (index === 40_000) login.fail(1, "bob", "192.0.2.9");
    login.failed(`user${index}`, `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
  }
  expect(login.retryAfter("alice", HOME)).toBe(0);
  expect(login.retryAfter("bob", "192.0.2.9")).toBeGreaterThan(0);
});

test("long names take no more memory than short ones", () => {
  const login = throttle();
  const before = heapInUse();
  for (let index = 0; index < 5_000; index++) {
    login.failed(`${index}${"x".repeat(16_000)}`, `10.0.${index >> 8}.${index & 255}`);
  }
  expect(heapInUse() - before).toBeLessThan(40_000_000);
});

test("attempts that share a count share a queue", () => {
  const { queueFor: line } = throttle();
  expect(line("alice", "2001:db8::1")).toEqual(line("alice", "2001:db8::2"));
  expect(line("alice", "2001:db8::1").key).not.toBe(line("bob", "2001:db8::1").key);
  expect(line("alice", "2001:db8::1").key).not.toBe(line("alice", "2001:db8:0:1::1").key);
});

test("unknown networks wait in a queue of their own, known ones do not", () => {
  const { queueFor: line, succeeded } = throttle();
  const before = line("alice", HOME);
  succeeded("alice", HOME);
  expect(line("alice", HOME).key).toBe(before.key);
  expect(line("alice", HOME).group).not.toBe(before.group);
  expect(line("bob", HOME).group).toBe(before.group);
});
