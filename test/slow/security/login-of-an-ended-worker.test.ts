/**
 * Another user's token. The main thread checks passwords, and a traffic thread matches the results by a number that it
 * assigned. A thread that ends during a login is replaced, and the new one counts from one again. If a late result went
 * to the new thread, it would match the login with the same number there: alice's token would go to the next user who
 * logs in.
 */
import { argon2Sync, randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { askLogin, fieldsOf } from "../../support/ask.ts";
import { misbehave, MISBEHAVING } from "../../support/misbehaving.ts";
import { ALICE, cheapHash, startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const SLOW = { username: "slow", password: "a password that takes seconds" };

/** Returns a hash so expensive that a few take seconds, in which a thread ends and another starts. */
function dearHash(password: string): string {
  const nonce = randomBytes(16);
  const cost = { memory: 256 * 1024, passes: 2, parallelism: 1 };
  const hash = argon2Sync("argon2id", { message: password, nonce, tagLength: 32, ...cost });
  const [salt, tag] = [nonce, hash].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=1$${salt}$${tag}`;
}

function subjectOf(token: unknown): unknown {
  const [, payload = ""] = String(token).split(".");
  return JSON.parse(Buffer.from(payload, "base64url").toString())["sub"];
}

const alive = async (gate: Sallyport): Promise<number | undefined> =>
  (await scrape(gate)).value("sallyport_workers_alive");

it("the result of a login from an ended thread goes to no other login", async () => {
  const users = {
    [ALICE.username]: { password: cheapHash(ALICE.password) },
    [SLOW.username]: { password: dearHash(SLOW.password) },
  };
  await using gate = await startSallyport({
    target: "http://127.0.0.1:1",
    config: { server: { workers: 2 }, login: { hashing: { concurrency: 1 } } },
    files: { "users.yaml": JSON.stringify({ users }) },
    env: MISBEHAVING,
  });
  // The first hash takes seconds, whichever thread ends; alice's logins wait behind it in the new threads, numbered from one.
  const lost = Array.from({ length: 8 }, () => askLogin(gate, SLOW).catch(() => undefined));
  await until(async () => ((await scrape(gate)).value("sallyport_login_queue_length") ?? 0) >= 4);
  await Promise.all(Array.from({ length: 16 }, () => misbehave(gate, "end")));
  await until(async () => (await alive(gate)) === 2, 30_000);
  const answers = await Promise.all(Array.from({ length: 6 }, () => askLogin(gate, ALICE)));
  const subjects = answers.map((answer) => subjectOf(fieldsOf(answer)["token"]));
  expect(new Set(subjects)).toEqual(new Set([ALICE.username]));
  await Promise.all(lost);
}, 120_000);
