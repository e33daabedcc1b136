import { expect, test } from "vitest";
import type { CredentialCheck } from "../../src/credentials/login-service.ts";
import { createLoginService } from "../../src/credentials/login-service.ts";
import { FailureThrottle } from "../../src/credentials/throttle/login-throttle.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { KeyedSemaphore } from "../../src/lib/async/keyed-semaphore.ts";
import { limitsOfPair } from "./fixture.ts";

const LIMITS = limitsOfPair(2, 60_000);

type CheckResult = Awaited<ReturnType<CredentialCheck["check"]>>;

function serviceWith(check: () => CheckResult) {
  const service = createLoginService({
    credentials: { check: async () => check(), isPartial: () => false },
    throttle: new FailureThrottle(LIMITS, systemClock),
    turns: new KeyedSemaphore(10),
    clock: systemClock,
    issuer: { issue: async ({ name }) => `token of ${name}` },
  });
  return () => service.logIn("alice", "apple", "192.0.2.1");
}

test("an unavailable store gives 503 with Retry-After, and never counts as a failure", async () => {
  let verdict: CheckResult = { result: "unavailable" };
  const logIn = serviceWith(() => verdict);
  for (let attempt = 0; attempt < 10; attempt += 1) {
    await expect(logIn()).rejects.toMatchObject({
      code: "users_unavailable",
      reason: "users_unavailable",
      retryAfter: 5,
    });
  }
  verdict = { result: "wrong" };
  await expect(logIn()).rejects.toMatchObject({ code: "bad_credentials" });
  verdict = { result: "found", user: { name: "alice", groups: [] } };
  expect(await logIn()).toEqual({ token: "token of alice" });
});
