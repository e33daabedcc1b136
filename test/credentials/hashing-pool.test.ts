import { once } from "node:events";
import { readFileSync, readdirSync } from "node:fs";
import { getPriority } from "node:os";
import type { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import type { AttemptOrigin } from "../../src/credentials/throttle/login-throttle.ts";
import { HashingPool } from "../../src/credentials/hashing/hashing-pool.ts";
import { startChild } from "../support/child.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { cheapHash, STRANGER } from "./fixture.ts";

function pool(concurrency: number, queue: number): HashingPool {
  const made = new HashingPool({ concurrency, queue });
  onTestFinished(() => made.close());
  return made;
}

const HASH = cheapHash("right");
/** Takes about 40 ms to verify. */
const BCRYPT = "$2a$08$cfcvVd2aQ8CMvoMpP2EBfeodLEkkFJ9umNEfPD18.hUF62qqlC/V.";
test("passwords are verified", async () => {
  const lazy = pool(2, 4);
  expect(await lazy.verify("right", HASH, STRANGER)).toBe(true);
  expect(await lazy.verify("wrong", HASH, STRANGER)).toBe(false);
});

test("a job that can neither run nor wait is refused at once", async () => {
  const small = pool(2, 3);
  const accepted = Array.from({ length: 5 }, () => small.verify("a", BCRYPT, STRANGER));
  expect(small.pending).toBe(3);
  await expect(small.verify("a", BCRYPT, STRANGER)).rejects.toMatchObject({
    code: "login_queue_full",
    retryAfter: 1,
  });
  expect(await Promise.all(accepted)).toEqual([true, true, true, true, true]);
  expect(small.pending).toBe(0);
  expect(await small.verify("right", HASH, STRANGER)).toBe(true);
});

test("a login from a known network displaces one from an unknown network, and runs next", async () => {
  const small = pool(1, 2);
  const ended: string[] = [];
  const verify = (name: string, origin: AttemptOrigin): Promise<unknown> =>
    small.verify("a", BCRYPT, origin).finally(() => ended.push(name));
  const strangers = Promise.allSettled([
    verify("running", STRANGER),
    verify("first", STRANGER),
    verify("second", STRANGER),
  ]);
  const home = { network: "192.0.2.9", known: true, failures: 0 };
  expect(await verify("familiar", home)).toBe(true);
  expect(ended).toEqual(["second", "running", "familiar"]);
  expect((await strangers).at(-1)).toMatchObject({
    reason: { code: "login_queue_full", reason: "queue_full", retryAfter: 1 },
  });
});

test("new limits apply at once, and no waiting or running job is lost", async () => {
  const changing = pool(1, 4);
  const accepted = Array.from({ length: 5 }, () => changing.verify("a", BCRYPT, STRANGER));
  expect(changing.pending).toBe(4);
  changing.change({ concurrency: 3, queue: 1 });
  expect(changing.pending).toBe(2);
  await expect(changing.verify("a", BCRYPT, STRANGER)).rejects.toMatchObject({
    code: "login_queue_full",
  });
  expect(await Promise.all(accepted)).toEqual([true, true, true, true, true]);

  changing.change({ concurrency: 1, queue: 4 });
  const [first, second] = [1, 2].map(() => changing.verify("a", BCRYPT, STRANGER));
  expect(changing.pending).toBe(1);
  expect(await Promise.all([first, second])).toEqual([true, true]);
});

test("a queue without places still uses every thread", async () => {
  const none = pool(1, 0);
  const first = none.verify("right", HASH, STRANGER);
  await expect(none.verify("right", HASH, STRANGER)).rejects.toMatchObject({
    code: "login_queue_full",
  });
  expect(await first).toBe(true);
});

test("a thread that dies fails only its own job, and is replaced", async () => {
  const single = pool(1, 4);
  const started = once(process, "worker");
  const dying = single.verify("a", BCRYPT, STRANGER);
  const next = single.verify("right", HASH, STRANGER);
  const [worker] = (await started) as [Worker];
  void worker.terminate();
  await expect(dying).rejects.toMatchObject({ code: "internal", reason: "hashing" });
  expect(await next).toBe(true);
});

test("a hash that cannot be computed fails its job and leaves the thread alive", async () => {
  const single = pool(1, 4);
  await expect(single.verify("right", "plain", STRANGER)).rejects.toMatchObject({
    code: "internal",
  });
  expect(await single.verify("right", HASH, STRANGER)).toBe(true);
});

test("closing rejects running, waiting, and later jobs", async () => {
  const closing = pool(1, 4);
  const outcomes = Promise.allSettled([
    closing.verify("a", BCRYPT, STRANGER),
    closing.verify("a", BCRYPT, STRANGER),
  ]);
  await closing.close();
  expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await expect(closing.verify("right", HASH, STRANGER)).rejects.toMatchObject({ code: "internal" });
});

test.runIf(process.platform === "linux")("hashing threads have a low priority", async () => {
  const niceness = (): number[] =>
    readdirSync("/proc/self/task").map((id) => {
      const stat = readFileSync(`/proc/self/task/${id}/stat`, "latin1");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]);
    });
  const ours = getPriority();
  expect(await pool(2, 4).verify("right", HASH, STRANGER)).toBe(true);
  await until(() => niceness().filter((nice) => nice === Math.min(19, ours + 10)).length === 1);
  expect(niceness()).toContain(ours);
});

test("a job keeps the process running, idle threads do not", async () => {
  await using directory = await temporaryDirectory();
  const source = new URL("../../src/credentials/hashing/hashing-pool.ts", import.meta.url).href;
  const script = await directory.write(
    "verify.mjs",
    `import { HashingPool } from ${JSON.stringify(source)};
     const pool = new HashingPool({ concurrency: 2, queue: 1 });
     console.log(await pool.verify("right", ${JSON.stringify(HASH)}, ${JSON.stringify(STRANGER)}));`,
  );
  const child = startChild(script, []);
  onTestFinished(() => child.kill());
  expect(await child.exit).toBe(0);
  expect(child.lines).toEqual(["true"]);
});
