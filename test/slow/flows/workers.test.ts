import { X509Certificate } from "node:crypto";
import { Agent } from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, askLogin, fieldsOf } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { ALICE, cheapHash, startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const THREADS = 2;
const users = {
  alice: { password: cheapHash(ALICE.password), groups: ["sales"] },
  carol: { password: cheapHash("carol's own") },
};

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

function startTwo(): Promise<Sallyport> {
  return startSallyport({
    target: backend.url,
    config: { server: { workers: THREADS } },
    files: { "users.yaml": JSON.stringify({ users }) },
  });
}

/** Returns which threads have answered: IDs grow in steps of the number of threads, so the remainder is the thread. */
function threadsOf(ids: readonly number[]): Set<number> {
  return new Set(ids.map((id) => id % THREADS));
}

/** Gets refusals on separate connections until both threads have answered. @returns their IDs. */
async function askBoth(gate: Sallyport): Promise<number[]> {
  const ids: number[] = [];
  await until(async () => {
    const refused = await Promise.all(Array.from({ length: 8 }, () => ask(gate, "/orders")));
    ids.push(...refused.map((answer) => Number(fieldsOf(answer)["id"])));
    return threadsOf(ids).size === THREADS;
  });
  return ids;
}

describe("two threads on one port", () => {
  let gate: Sallyport;
  beforeAll(async () => {
    gate = await startTwo();
  });
  afterAll(() => gate.close());

  it("both handle logins, and each accepts the other's tokens", async () => {
    const tokens = new Map<number, string>();
    await until(async () => {
      const answer = await askLogin(gate, ALICE);
      expect(answer.status).toBe(200);
      const { id, token } = fieldsOf(answer);
      tokens.set(Number(id) % THREADS, String(token));
      return tokens.size === THREADS;
    });
    for (const token of tokens.values()) {
      const versions = await Promise.all(
        Array.from({ length: 12 }, () => ask(gate, "/api/version", { token })),
      );
      expect(new Set(versions.map(({ status }) => status))).toEqual(new Set([200]));
      expect(threadsOf(versions.map((answer) => Number(fieldsOf(answer)["id"]))).size).toBe(
        THREADS,
      );
    }
  });

  it("never repeat an ID, over several persistent connections", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 10 });
    const answers = await Promise.all(
      Array.from({ length: 400 }, () => ask(gate, "/orders", { agent })),
    );
    agent.destroy();
    const ids = answers.map((answer) => Number(fieldsOf(answer)["id"]));
    ids.push(...(await askBoth(gate)));
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.every(Number.isSafeInteger)).toBe(true);
    expect(threadsOf(ids).size).toBe(THREADS);
  });

  it("write one complete log line for each response", async () => {
    const ids = await askBoth(gate);
    await until(() => {
      const logged = new Set(gate.log().map((line) => line["id"]));
      return ids.every((id) => logged.has(id));
    });
  });
});

describe("the throttle", () => {
  it("applies across both threads", async () => {
    await using gate = await startTwo();
    const ids: number[] = [];
    const guess = async (password: string): Promise<number> => {
      const answer = await askLogin(gate, { username: "carol", password });
      ids.push(Number(fieldsOf(answer)["id"]));
      return answer.status;
    };
    for (let i = 0; i < 5; i += 1) expect(await guess(`guess ${i}`)).toBe(401);
    // Whichever thread answers now, all five guesses count.
    await until(async () => {
      expect(await guess("carol's own")).toBe(429);
      return ids.length > 12 && threadsOf(ids.slice(5)).size === THREADS;
    });
    expect((await askLogin(gate, ALICE)).status).toBe(200);
  });
});

describe("the metrics of two threads", () => {
  it("are one set in which counters are summed and gauges are not", async () => {
    await using gate = await startTwo();
    const statuses: number[] = [];
    for (let i = 0; i < 4; i += 1) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => ask(gate, "/x", { token: gate.token })),
      );
      statuses.push(...answers.map(({ status }) => status));
    }
    const refused = (await askBoth(gate)).length;
    expect(new Set(statuses)).toEqual(new Set([200]));
    const { server } = await testCertificates();
    await until(async () => {
      const page = await scrape(gate);
      return page.sum("sallyport_http_requests_total", 'code="401"') === refused;
    });
    const page = await scrape(gate);

    expect(page.sum("sallyport_http_requests_total", 'route="everything"', 'code="200"')).toBe(40);
    expect(page.sum("sallyport_upstream_requests_total", 'upstream="app"')).toBe(40);
    expect(page.sum("sallyport_http_request_duration_seconds_count", "everything")).toBe(
      40 + refused,
    );
    expect(page.value('sallyport_auth_decisions_total{result="allowed",reason="ok"}')).toBe(40);
    expect(page.sum("sallyport_token_cache_requests_total")).toBe(40);
    // Each thread has its own cache.
    expect(page.value("sallyport_token_cache_entries")).toBe(THREADS);
    expect(page.sum("sallyport_token_cache_requests_total", "miss")).toBeGreaterThanOrEqual(
      THREADS,
    );
    expect(page.value("sallyport_tokens_issued_total")).toBe(1);
    expect(page.value('sallyport_logins_total{result="success"}')).toBe(1);
    expect(page.value("sallyport_http_requests_in_flight")).toBe(0);

    expect(page.sum("sallyport_build_info")).toBe(1);
    expect(page.value("sallyport_draining")).toBe(0);
    expect(page.value("sallyport_config_last_reload_successful")).toBe(1);
    const minuteAgo = Date.now() / 1000 - 60;
    for (const name of [
      "process_start_time_seconds",
      "sallyport_config_last_reload_success_timestamp_seconds",
    ]) {
      expect(page.value(name)).toBeGreaterThan(minuteAgo);
      expect(page.value(name)).toBeLessThanOrEqual(Date.now() / 1000 + 1);
    }
    expect(page.value("sallyport_tls_certificate_not_after_timestamp_seconds")).toBe(
      new X509Certificate(server.cert).validToDate.getTime() / 1000,
    );
    expect(new Set(page.series).size).toBe(page.series.length);
    for (const name of ["process_resident_memory_bytes", "nodejs_heap_size_total_bytes"]) {
      expect(page.text.match(new RegExp(`^${name} `, "gm"))).toHaveLength(1);
    }
  });

  it("have the same series as one thread", async () => {
    await using two = await startTwo();
    await using one = await startSallyport({ target: backend.url });
    const [ofTwo, ofOne] = await Promise.all([scrape(two), scrape(one)]);
    const own = (series: readonly string[]): string[] =>
      series.filter((name) => name.startsWith("sallyport_")).toSorted();
    expect(own(ofTwo.series)).toEqual(own(ofOne.series));
  });
});

describe("SIGTERM", () => {
  it("lets requests in each thread finish, and exits with 0", async () => {
    await using gate = await startTwo();
    const slow = Array.from({ length: 8 }, () => ask(gate, "/public/slow?ms=2000"));
    await until(async () => {
      const page = await scrape(gate);
      return page.value("sallyport_http_requests_in_flight") === slow.length;
    });
    expect(await gate.stop()).toBe(0);
    const answers = await Promise.all(slow);
    expect(answers.map(({ status, body }) => [status, body])).toEqual(
      slow.map(() => [200, "slow"]),
    );
  });
});
