import { hash } from "node:crypto";
import { expect, test } from "vitest";
import type { AttemptEnd } from "../../src/core/shared-parts.ts";
import { FailureThrottle } from "../../src/credentials/throttle/login-throttle.ts";
import { limitsOfPair } from "./fixture.ts";

const LIMITS = limitsOfPair(3, 300_000);

/** Replicas that receive each other's attempts at once. They have just started: their clocks begin at 0. */
function replicas(count: number) {
  const time = { ms: 0 };
  const clock = { now: () => time.ms, monotonic: () => time.ms };
  const told: AttemptEnd[] = [];
  const all: FailureThrottle[] = Array.from({ length: count }, (_, own) => {
    return new FailureThrottle(LIMITS, clock, {
      digest: (text) => hash("sha256", text, "base64url"),
      tell(end) {
        told.push(end);
        for (const [other, throttle] of all.entries()) if (other !== own) throttle.arrived(end, 0);
      },
    });
  });
  return { all, time, told, clock };
}

const attemptAt = (throttle: FailureThrottle, name = "alice", client = "192.0.2.1") =>
  throttle.attemptsOf(name, client).begin();

function failAt(throttle: FailureThrottle): void {
  const attempt = attemptAt(throttle);
  if ("limit" in attempt) throw new Error("refused");
  attempt.failed();
}

test("a failure at one replica counts once at every replica", () => {
  const { all } = replicas(3);
  for (const throttle of all) failAt(throttle);
  for (const throttle of all) {
    expect(attemptAt(throttle)).toEqual({ limit: "pair", retryAfter: 300 });
    expect(attemptAt(throttle, "alice", "198.51.100.1")).toHaveProperty("origin");
  }
});

test("a right password at one replica clears the name and network at all, and is sent only once", () => {
  const { all, told } = replicas(2);
  const [one, other] = all as [FailureThrottle, FailureThrottle];
  failAt(one);
  failAt(one);
  const attempt = attemptAt(other);
  if ("limit" in attempt) throw new Error("refused");
  attempt.succeeded();
  expect(one.attemptsOf("alice", "192.0.2.1").remaining()).toBe(3);
  expect(attemptAt(one)).toMatchObject({ origin: { known: true } });
  const before = told.length;
  const again = attemptAt(one);
  if (!("limit" in again)) again.succeeded();
  expect(told.length).toBe(before);
});

test("a ban that began before a replica started lasts for the rest of its time there", () => {
  const { all, told } = replicas(1);
  for (let failure = 0; failure < 3; failure += 1) failAt(all[0] as FailureThrottle);
  const { all: later, time } = replicas(1);
  const throttle = later[0] as FailureThrottle;
  for (const end of told) throttle.arrived(end, 100_000);
  expect(attemptAt(throttle)).toEqual({ limit: "pair", retryAfter: 200 });
  time.ms = 200_000;
  expect(attemptAt(throttle)).toHaveProperty("origin");
});

test("nothing sent to other replicas contains a name or an address", () => {
  const { all, told } = replicas(1);
  failAt(all[0] as FailureThrottle);
  expect(JSON.stringify(told)).not.toMatch(/alice|192\.0\.2/);
});
