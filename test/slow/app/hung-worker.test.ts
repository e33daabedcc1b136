import { open, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { misbehave, misbehaving, MISBEHAVING } from "../../support/misbehaving.ts";
import { namedPipe } from "../../support/named-pipe.ts";
import { type ConfigParts, startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

function start(server: ConfigParts = {}): Promise<Sallyport> {
  return startSallyport({
    target: backend.url,
    config: { server: { workers: 2, ...server } },
    env: MISBEHAVING,
  });
}

const page = async ({ adminPort }: Sallyport, path: string) => ask({ port: adminPort }, path);
const alive = async (gate: Sallyport): Promise<number | undefined> =>
  (await scrape(gate)).value("sallyport_workers_alive");
const countOf = (gate: Sallyport, message: string): number =>
  gate.log().filter(({ msg }) => msg === message).length;

/** Returns whether ten requests on separate connections are all answered within two seconds. */
async function serves(gate: Sallyport, path = "/public/x"): Promise<boolean> {
  const began = performance.now();
  const answers = Array.from({ length: 10 }, () =>
    ask(gate, path).then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  const served = (await Promise.all(answers)).every(Boolean);
  return served && performance.now() - began < 2_000;
}

// Concurrent, since they mostly wait.
describe.concurrent("a worker that hangs", () => {
  it("is detected, terminated and replaced, while metrics stay available and complete", async () => {
    await using gate = await start();
    expect(await serves(gate)).toBe(true);
    const before = await scrape(gate);
    const answered = before.sum("sallyport_http_requests_total", 'code="200"');
    expect(answered).toBeGreaterThanOrEqual(10);
    expect([before.value("sallyport_workers"), await alive(gate)]).toEqual([2, 2]);
    await misbehave(gate, "hang");
    // By default, the kubelet waits for a second.
    const probed = performance.now();
    expect((await page(gate, "/readyz")).status).toBe(200);
    expect(performance.now() - probed).toBeLessThan(950);
    const asked = performance.now();
    expect((await scrape(gate)).sum("sallyport_http_requests_total", 'code="200"')).toBe(answered);
    expect(performance.now() - asked).toBeLessThan(5_000);

    // It does not block a reload either, and its replacement has the new configuration.
    const file = join(gate.directory, "config.yaml");
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replaceAll("/public/", "/open/"));
    const reloading = ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });

    const states = new Set<number>();
    await until(async () => {
      const { status, body } = await page(gate, "/livez");
      states.add(status);
      if (status === 503) expect(body).toMatch(/^worker [01] has not served for \d+ s\n$/);
      return states.has(503) && status === 200;
    }, 40_000);
    expect((await reloading).status).toBe(200);
    expect(await serves(gate, "/open/x")).toBe(true);
    expect((await ask(gate, "/public/x")).status).toBe(401);
    const after = await scrape(gate);
    expect(after.value("sallyport_workers_alive")).toBe(2);
    expect(after.sum("sallyport_http_requests_total", 'code="200"')).toBe(answered + 10);
    expect(countOf(gate, "a traffic thread does not respond")).toBe(1);
    expect(await gate.stop()).toBe(0);
  }, 120_000);

  it("makes the pod unready when it is the last one", async () => {
    await using gate = await start();
    // In a system call, so that neither is replaced before the other is detected, up to a second later.
    const pipe = await namedPipe(join(gate.directory, "pipe"));
    await Promise.all(Array.from({ length: 16 }, () => misbehave(gate, `open ${pipe}`)));
    await until(() => misbehaving(gate) === 2);
    await until(async () => (await page(gate, "/readyz")).status === 503, 40_000);
    // Unblocks all threads that wait for a writer.
    await using writer = await open(pipe, "w");
    expect((await writer.stat()).isFIFO()).toBe(true);
    await until(async () => (await page(gate, "/readyz")).status === 200, 40_000);
    await until(async () => (await alive(gate)) === 2, 40_000);
    await until(() => serves(gate), 20_000);
  }, 120_000);

  it("fails the liveness probe when it cannot be terminated, and is not replaced", async () => {
    await using gate = await start();
    const pipe = await namedPipe(join(gate.directory, "pipe"));
    await misbehave(gate, `open ${pipe}`);
    await until(async () => (await page(gate, "/livez")).status === 503, 40_000);
    await until(() => countOf(gate, "a traffic thread cannot be terminated") === 1, 20_000);
    expect((await page(gate, "/livez")).status).toBe(503);
    expect((await page(gate, "/readyz")).status).toBe(200);
    expect(await alive(gate)).toBe(1);
  }, 120_000);
});

describe.concurrent("a worker that ends", () => {
  it("is replaced immediately; after repeated failures with a growing delay, which /livez reports", async () => {
    await using gate = await start();
    await misbehave(gate, "end");
    await until(async () => (await alive(gate)) === 2, 20_000);
    expect(countOf(gate, "a traffic thread ended")).toBe(1);
    expect((await page(gate, "/livez")).status).toBe(200);
    await until(async () => {
      await misbehave(gate, "end");
      return (await page(gate, "/livez")).body.includes("has ended 5 times in a row");
    }, 120_000);
    expect((await page(gate, "/livez")).status).toBe(503);
    const rests = (): unknown[] => gate.log().flatMap((line) => line["again_ms"] ?? []);
    await until(() => rests().includes(8_000));
    expect(rests().length).toBeLessThanOrEqual(10);
  }, 120_000);
});
