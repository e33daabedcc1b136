import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { createLoginThrottle } from "../../src/credentials/login-throttle.ts";

const MINUTE = 60_000;
const PAIR = { attempts: 5, withinMs: 2 * MINUTE, banMs: 5 * MINUTE };
const HOME = "192.0.2.1";

function storm() {
  let time = 1_000_000;
  const login = createLoginThrottle(
    {
      pair: PAIR,
      address: { ...PAIR, attempts: 50 },
      account: { attempts: 100, withinMs: 24 * 60 * MINUTE },
      global: { attempts: 300, withinMs: MINUTE },
    },
    { now: () => 0, monotonic: () => time },
  );
  let names = 0;
  return {
    ...login,
    advance(milliseconds: number) {
      time += milliseconds;
    },
    /** Attempts with wrong passwords, each with another name from another address; how many were let through. */
    rage(times: number): number {
      let tried = 0;
      for (let count = 0; count < times; count++) {
        names += 1;
        const from = `10.${(names >> 16) & 255}.${(names >> 8) & 255}.${names & 255}`;
        if (login.refusal(`user${names}`, from) !== undefined) continue;
        tried += 1;
        login.failed(`user${names}`, from);
      }
      return tried;
    },
  };
}

describe("failures from everywhere with every name", () => {
  test("strangers have 300, and then five a second", () => {
    const login = storm();
    expect(login.rage(1000)).toBe(300);
    expect(login.refusal("carol", "203.0.113.9")).toEqual({ limit: "global", retryAfter: 1 });
    login.advance(200);
    expect(login.rage(1000)).toBe(1);
    login.advance(10_000);
    expect(login.rage(1000)).toBe(50);
    login.advance(10 * MINUTE);
    expect(login.rage(1000)).toBe(300);
  });

  test("a name on a network that it has logged in from is no stranger", () => {
    const login = storm();
    login.succeeded("alice", HOME);
    login.rage(1000);
    expect(login.refusal("alice", HOME)).toBeUndefined();
    expect(login.refusal("alice", "192.0.2.2")?.limit).toBe("global");
    expect(login.refusal("bob", HOME)?.limit).toBe("global");
  });

  test("what it does wrong there is its own affair, not the strangers'", () => {
    const login = storm();
    login.succeeded("alice", HOME);
    for (let count = 0; count < 4; count++) login.failed("alice", HOME);
    expect(login.rage(1000)).toBe(300);
    login.failed("alice", HOME);
    expect(login.refusal("alice", HOME)).toEqual({ limit: "pair", retryAfter: 300 });
  });

  test("a wait stays short, however many failures were under way when the budget ended", () => {
    const login = storm();
    for (let count = 0; count < 5000; count++) login.failed(`u${count}`, `10.1.${count >> 8}.1`);
    expect(login.refusal("carol", "203.0.113.9")?.retryAfter).toBe(1);
  });

  test("of several reasons the longest wait is told", () => {
    const login = storm();
    login.rage(1000);
    for (let count = 0; count < 5; count++) login.failed("bob", HOME);
    expect(login.refusal("bob", HOME)).toEqual({ limit: "pair", retryAfter: 300 });
  });
});

/** The heap in use when all garbage is gone, in bytes. */
function heapInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect === "function") collect();
  return process.memoryUsage().heapUsed;
}

// A million were measured by hand: 15 MB from one address, 18 MB with an address each, both reached with the first
// 50,000; 9 µs of CPU for each attempt, from the first to the last.
test("150,000 names, each from a /64 of its own, take no more memory than the latest 50,000", () => {
  const login = storm();
  const before = heapInUse();
  for (let index = 0; index < 150_000; index++) {
    const subnet = `${(index >> 16).toString(16)}:${(index & 65_535).toString(16)}`;
    login.failed(`user${index}`, `2001:db8:${subnet}::1`);
  }
  expect(heapInUse() - before).toBeLessThan(30_000_000);
  // It still counts.
  for (let count = 0; count < 5; count++) login.failed("alice", HOME);
  expect(login.refusal("alice", HOME)?.retryAfter).toBe(300);
}, 60_000);
