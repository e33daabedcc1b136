import { argon2Sync, randomBytes } from "node:crypto";
import { Agent } from "node:https";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask, askLogin } from "../../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { ALICE, startSallyport, type Sallyport } from "../../support/sallyport.ts";

const LOGINS = 50;
const AT_ONCE = 4;
const ROUNDS = 6;

/** Hashes with the parameters that OWASP recommends and `hash-password` uses. */
function fullHash(password: string): string {
  const nonce = randomBytes(16);
  const cost = { memory: 19_456, passes: 2, parallelism: 1 };
  const hash = argon2Sync("argon2id", { message: password, nonce, tagLength: 32, ...cost });
  const [salt, tag] = [nonce, hash].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=19456,t=2,p=1$${salt}$${tag}`;
}

let backend: EchoBackend;
let gate: Sallyport;
const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    // All fifty must be hashed, so none may be refused.
    config: { login: { hashing: { queue: LOGINS } } },
    files: {
      "users.yaml": JSON.stringify({ users: { alice: { password: fullHash(ALICE.password) } } }),
    },
  });
});
afterAll(async () => {
  agent.destroy();
  await gate.close();
  await backend.close();
});

/** Sends concurrent proxied requests until `enough` returns true. @returns their durations in milliseconds. */
async function durations(enough: (sent: number) => boolean): Promise<number[]> {
  const taken: number[] = [];
  const worker = async (): Promise<void> => {
    while (!enough(taken.length)) {
      const started = performance.now();
      const { status } = await ask(gate, "/orders", { token: gate.token, agent });
      taken.push(performance.now() - started);
      expect(status).toBe(200);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return taken;
}

function p99(taken: readonly number[]): number {
  const sorted = taken.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN;
}

/** Returns how many times longer proxied requests take during fifty logins than just before, at the 99th percentile. */
async function slowdown(): Promise<number> {
  const idle = await durations((sent) => sent >= 500);
  let running = true;
  const storm = Promise.all(Array.from({ length: LOGINS }, () => askLogin(gate, ALICE)));
  const over = storm.finally(() => (running = false));
  const loaded = await durations(() => !running);
  const statuses = (await over).map(({ status }) => status);
  expect(statuses).toEqual(Array.from({ length: LOGINS }, () => 200));
  expect(loaded.length).toBeGreaterThan(200);
  return p99(loaded) / p99(idle);
}

it("50 concurrent logins keep the proxied p99 under five times its idle value", async () => {
  await durations((sent) => sent >= 300);
  // Other load on the machine can spoil a round but not improve it, so the best of six counts.
  let best = Infinity;
  for (let round = 0; round < ROUNDS && best >= 5; round += 1) {
    best = Math.min(best, await slowdown());
  }
  expect(best).toBeLessThan(5);
}, 120_000);
