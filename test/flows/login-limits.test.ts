import { argon2Sync, randomBytes } from "node:crypto";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, askLogin, fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { ALICE, cheapHash, startSallyport, type Sallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

/** Returns a hash that takes a while to verify: 64 MiB in three passes. */
function slowHash(password: string): string {
  const nonce = randomBytes(16);
  const cost = { memory: 65_536, passes: 3, parallelism: 1 };
  const hash = argon2Sync("argon2id", { message: password, nonce, tagLength: 32, ...cost });
  const [salt, tag] = [nonce, hash].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=65536,t=3,p=1$${salt}$${tag}`;
}

describe("after five failures for one username from one address", () => {
  const users = {
    alice: { password: cheapHash(ALICE.password) },
    carol: { password: cheapHash("carol's own") },
  };

  it("even the right password gets 429, and other users are unaffected", async () => {
    await using gate = await startSallyport({
      target: backend.url,
      files: { "users.yaml": JSON.stringify({ users }) },
    });
    const statuses: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const { status } = await askLogin(gate, { username: "carol", password: `guess ${i}` });
      statuses.push(status);
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401]);

    const answer = await askLogin(gate, { username: "carol", password: "carol's own" });
    expect(answer.status).toBe(429);
    expect(Number(answer.headers["retry-after"])).toBeGreaterThan(270);
    expect(Number(answer.headers["retry-after"])).toBeLessThanOrEqual(300);
    expect(fieldsOf(answer)).toMatchObject({ success: false, id: expect.any(Number) });

    expect((await askLogin(gate, ALICE)).status).toBe(200);
    const page = await scrape(gate);
    expect(page.value('sallyport_logins_total{result="bad_credentials"}')).toBe(5);
    expect(page.value('sallyport_logins_total{result="throttled"}')).toBe(1);
  });

  it("a burst gets no more guesses than sequential requests", async () => {
    await using gate = await startSallyport({
      target: backend.url,
      files: { "users.yaml": JSON.stringify({ users }) },
    });
    const guesses = Array.from({ length: 20 }, (_, i) => `guess ${i}`);
    const answers = await Promise.all(
      guesses.map((password) => askLogin(gate, { username: "carol", password })),
    );
    expect(answers.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(5);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401, 429]));
  });
});

describe("more logins at once than fit the queue", () => {
  it("get 503 with Retry-After, and those that fit succeed", async () => {
    await using gate = await startSallyport({
      target: backend.url,
      config: { login: { hashing: { concurrency: 1, queue: 2 } } },
      files: {
        "users.yaml": JSON.stringify({ users: { alice: { password: slowHash(ALICE.password) } } }),
      },
    });
    const answers = await Promise.all(Array.from({ length: 12 }, () => askLogin(gate, ALICE)));
    const refused = answers.filter(({ status }) => status === 503);
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(3);
    expect(refused.length).toBeGreaterThanOrEqual(1);
    expect(refused.length + answers.filter(({ status }) => status === 200).length).toBe(12);
    for (const { headers } of refused) expect(headers["retry-after"]).toMatch(/^[1-9]\d*$/);
    const page = await scrape(gate);
    expect(page.value('sallyport_logins_total{result="queue_full"}')).toBe(refused.length);
    expect((await ask(gate, "/x", { token: gate.token })).status).toBe(200);
  }, 60_000);
});

describe("a users file that changes", () => {
  const alice = { alice: { password: cheapHash(ALICE.password) } };
  let gate: Sallyport;
  beforeAll(async () => {
    gate = await startSallyport({ target: backend.url });
  });
  afterAll(() => gate.close());

  /** Replaces the file the way editors and Kubernetes do. */
  async function replaceUsers(content: string): Promise<void> {
    const next = join(gate.directory, "users.yaml.next");
    await writeFile(next, content);
    await rename(next, join(gate.directory, "users.yaml"));
  }

  it("is reloaded while the proxy runs", async () => {
    const dave = { username: "dave", password: "dave's own" };
    expect((await askLogin(gate, dave)).status).toBe(401);
    const users = { ...alice, dave: { password: cheapHash(dave.password), groups: ["new"] } };
    await replaceUsers(JSON.stringify({ users }));
    await until(() => gate.log().some((line) => line["users"] === 2));
    expect((await askLogin(gate, dave)).status).toBe(200);
  });

  it("keeps the old users while it is broken, and the log names the line but not the value", async () => {
    await replaceUsers("users:\n  alice:\n    password: plain-text-s3cret\n");
    const isReported = (line: Readonly<Record<string, unknown>>): boolean =>
      JSON.stringify(line["problems"] ?? "").includes("users.yaml:3:");
    await until(() => gate.log().some(isReported));
    const line = gate.log().find(isReported);
    expect(line?.["level"]).toBe("error");
    expect(JSON.stringify(gate.log())).not.toContain("plain-text-s3cret");
    expect((await askLogin(gate, { username: "dave", password: "dave's own" })).status).toBe(200);
    expect((await askLogin(gate, ALICE)).status).toBe(200);
    const page = await scrape(gate);
    expect(page.value("sallyport_config_last_reload_successful")).toBe(0);
  });

  it("takes effect again once it is repaired", async () => {
    await replaceUsers(JSON.stringify({ users: alice }));
    await until(() => gate.log().some((line) => line["users"] === 1));
    expect((await askLogin(gate, { username: "dave", password: "dave's own" })).status).toBe(401);
    const page = await scrape(gate);
    expect(page.value("sallyport_config_last_reload_successful")).toBe(1);
  });
});
