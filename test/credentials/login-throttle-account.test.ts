import { describe, expect, test } from "vitest";
import { FailureThrottle } from "../../src/credentials/throttle/login-throttle.ts";
import { oneByOne } from "./fixture.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const HOME = "192.0.2.1";
const FAR = { attempts: 1_000_000, within: MINUTE, ban: MINUTE };

/** Consecutive failures of one name, without the limits per minute. */
function guarded(attempts = 100) {
  let time = 1_000_000;
  const login = oneByOne(
    new FailureThrottle(
      { ...FAR, address: FAR, global: FAR, account: { attempts, within: DAY } },
      { now: () => 0, monotonic: () => time },
    ),
  );
  return {
    ...login,
    advance(milliseconds: number) {
      time += milliseconds;
    },
    /** Makes this many attempts with a wrong password. Returns how many were allowed. */
    guess(times: number, client: string, username = "alice"): number {
      let tried = 0;
      for (let count = 0; count < times; count++) {
        if (login.failed(username, client)) tried += 1;
      }
      return tried;
    },
  };
}

const address = (index: number): string => `10.0.${index >> 8}.${index & 255}`;

describe("consecutive failures of one name (NIST SP 800-63B §5.2.2)", () => {
  test("one network never gets more than 100, however slowly it guesses", () => {
    const login = guarded();
    let tried = 0;
    for (let guess = 0; guess < 500; guess++) {
      tried += login.guess(1, HOME);
      login.advance(30 * MINUTE);
      if (login.refusal("alice", HOME) !== undefined) break;
    }
    expect(tried).toBe(100);
    expect(login.refusal("alice", HOME)).toEqual({
      limit: "account",
      retryAfter: (DAY - 30 * MINUTE) / 1000,
    });
  });

  test("a burst gets no more: `remaining` limits concurrent attempts", () => {
    const login = guarded();
    expect(login.remaining("alice", HOME)).toBe(100);
    login.guess(98, HOME);
    expect(login.remaining("alice", HOME)).toBe(2);
    login.guess(1, "192.0.2.2");
    login.guess(1, "192.0.2.3");
    expect(login.remaining("alice", HOME)).toBeLessThanOrEqual(0);
    expect(login.remaining("alice", "192.0.2.4")).toBe(3);
  });

  test("after that, each further network gets three", () => {
    const login = guarded();
    for (let index = 0; index < 50; index++) expect(login.guess(2, address(index))).toBe(2);
    for (let index = 50; index < 60; index++) expect(login.guess(9, address(index))).toBe(3);
    expect(login.guess(9, address(0))).toBe(1);
  });

  test("the owner gets in from a network that has not been guessing, and stays in", () => {
    const login = guarded();
    login.guess(500, "198.51.100.7");
    expect(login.refusal("alice", "198.51.100.7")?.limit).toBe("account");
    expect(login.refusal("alice", HOME)).toBeUndefined();
    expect(login.guess(2, HOME)).toBe(2);
    expect(login.refusal("alice", HOME)).toBeUndefined();
    login.succeeded("alice", HOME);
    expect(login.guess(99, HOME)).toBe(99);
    login.succeeded("alice", HOME);
    expect(login.guess(150, HOME)).toBe(100);
  });

  test("a success elsewhere does not lower the guard for those who were guessing", () => {
    const login = guarded();
    login.guess(500, "198.51.100.7");
    login.succeeded("alice", HOME);
    expect(login.guess(1, "198.51.100.7")).toBe(0);
  });

  test("other names are not affected", () => {
    const login = guarded();
    login.guess(500, HOME);
    expect(login.refusal("bob", HOME)).toBeUndefined();
    expect(login.guess(20, HOME, "bob")).toBe(20);
  });

  test("a day without failures ends the guard, and refused attempts do not prolong it", () => {
    const login = guarded();
    login.guess(100, HOME);
    login.advance(DAY - 1);
    expect(login.guess(10, HOME)).toBe(0);
    expect(login.refusal("alice", HOME)?.retryAfter).toBe(1);
    login.advance(1);
    expect(login.guess(150, HOME)).toBe(100);
  });

  test("a user who logged in from a network a month ago is unknown there", () => {
    const login = guarded(10);
    login.succeeded("alice", HOME);
    login.guess(10, "198.51.100.7");
    expect(login.guess(9, HOME)).toBe(9);
    login.advance(30 * DAY);
    login.guess(10, "198.51.100.7");
    expect(login.guess(9, HOME)).toBe(3);
  });

  test("the latest eight networks of a name are remembered", () => {
    const login = guarded(10);
    for (let index = 0; index < 9; index++) login.succeeded("alice", address(index));
    login.guess(10, "198.51.100.7");
    expect(login.guess(9, address(0))).toBe(3);
    expect(login.guess(9, address(1))).toBe(9);
  });
});
