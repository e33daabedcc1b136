import { describe, expect, test } from "vitest";
import { FailureThrottle } from "../../../src/credentials/throttle/login-throttle.ts";
import { oneByOne } from "../../credentials/fixture.ts";

/**
 * The attack: an account is guarded after 100 consecutive failures. The counts are bounded, so an attacker who fails
 * with enough other names could evict that account and continue guessing from zero.
 */

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const FAR = { attempts: 1_000_000, within: 1, ban: 1 };
const OTHERS = 60_000;

function open() {
  let time = 1_000_000;
  const login = oneByOne(
    new FailureThrottle(
      { ...FAR, address: FAR, global: FAR, account: { attempts: 100, within: DAY } },
      { now: () => 0, monotonic: () => time },
    ),
  );
  const tries = (name: string, client: string, most = 9): number => {
    let through = 0;
    while (through < most && login.failed(name, client)) through += 1;
    return through;
  };
  return {
    ...login,
    tries,
    advance(milliseconds: number) {
      time += milliseconds;
    },
    /** Fails once for each of many other names from many other networks, within `overMs` milliseconds. */
    failWithOthers(times: number, overMs: number) {
      for (let index = 0; index < times; index++) {
        time += overMs / times;
        login.failed(`other-${index}`, `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
      }
    },
  };
}

describe("failures of other names", () => {
  test("do not end the guard of a name, or a network's count for it", () => {
    const login = open();
    expect(login.tries("alice", "198.51.100.1", 150)).toBe(100);
    expect(login.tries("alice", "198.51.100.2")).toBe(3);

    login.failWithOthers(OTHERS, DAY / 2);

    expect(login.tries("alice", "198.51.100.1")).toBe(0);
    expect(login.tries("alice", "198.51.100.2")).toBe(0);
    expect(login.tries("alice", "198.51.100.3")).toBe(3);
  });

  test("do not reset a series of failures that is below the guard", () => {
    const login = open();
    expect(login.tries("alice", "198.51.100.1", 60)).toBe(60);
    login.failWithOthers(OTHERS, DAY / 2);
    expect(login.tries("alice", "198.51.100.1", 150)).toBe(40);
  });

  test("do not reveal which names exist: an unknown name is guarded in the same way", () => {
    const login = open();
    for (const name of ["alice", "nobody"]) login.tries(name, "198.51.100.1", 100);
    login.failWithOthers(OTHERS, DAY / 2);
    for (const name of ["alice", "nobody"]) {
      expect(login.tries(name, "198.51.100.1"), name).toBe(0);
      expect(login.tries(name, "198.51.100.3"), name).toBe(3);
    }
  });

  test("do not reset the count of a network that the name logs in from", () => {
    const login = open();
    login.succeeded("alice", "192.0.2.1");
    expect(login.tries("alice", "192.0.2.1", 150)).toBe(100);
    login.failWithOthers(OTHERS, DAY / 2);
    expect(login.tries("alice", "192.0.2.1")).toBe(0);
  });

  test("neither guard other names nor prolong a series, which ends a day after its last failure", () => {
    const login = open();
    login.tries("alice", "198.51.100.1", 150);
    login.failWithOthers(OTHERS, DAY);
    for (let index = 0; index < 100; index++) {
      expect(login.remaining(`fresh-${index}`, "192.0.2.9")).toBeGreaterThan(90);
    }
    login.advance(DAY);
    expect(login.tries("alice", "198.51.100.1", 150)).toBe(100);
  });
});
