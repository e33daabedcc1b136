/**
 * A share per worker. Each thread used to count connection limits separately: with four workers, one address got four
 * shares, and all clients together used four times the planned memory and file descriptors.
 *
 * Both limits apply to the process. The counts of a worker that ended are released.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Crowd, startCrowd } from "../../support/crowd.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { misbehave, MISBEHAVING } from "../../support/misbehaving.ts";
import { request } from "../../support/raw-client.ts";
import { startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const SHARE = 20;
const ALL = 50;
const GET = request(["GET /public/x HTTP/1.1", "Host: localhost"]);

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

function start(): Promise<Sallyport> {
  return startSallyport({
    target: backend.url,
    config: {
      server: { workers: 4, limits: { connections: ALL, connectionsPerAddress: SHARE } },
    },
    env: MISBEHAVING,
  });
}

async function rejected(gate: Sallyport, reason: string): Promise<number> {
  const page = await scrape(gate);
  return page.value(`sallyport_requests_rejected_total{reason="${reason}"}`) ?? -1;
}

/** Returns the number of connections that got a response. */
const answered = ({ received }: Crowd): number =>
  received().filter((text) => text.includes("200 OK")).length;

function crowdFrom(gate: Sallyport, from: string, count: number): Crowd {
  return startCrowd(gate, count, { from, each: (socket) => void socket.write(GET) });
}

describe("four workers together", () => {
  it("give one address one share, even after a worker has ended, and all clients one limit", async () => {
    await using gate = await start();
    {
      using crowd = crowdFrom(gate, "127.0.0.66", 3 * SHARE);
      await until(() => crowd.closed() === 2 * SHARE && answered(crowd) === SHARE, 20_000);
      expect(await rejected(gate, "connections_per_address")).toBe(2 * SHARE);
      // The connections of a worker end with it, and are no longer counted.
      await misbehave(gate, "end");
      await until(() => crowd.closed() > 2 * SHARE, 20_000);
      const free = crowd.closed() - 2 * SHARE;
      await until(async () => (await scrape(gate)).value("sallyport_workers_alive") === 4, 30_000);
      using more = crowdFrom(gate, "127.0.0.66", free);
      await until(() => answered(more) === free, 20_000);
    }
    await until(async () => {
      using crowd = crowdFrom(gate, "127.0.0.66", SHARE);
      await until(() => crowd.closed() + answered(crowd) === SHARE, 20_000);
      return crowd.closed() === 0;
    }, 30_000);
    const others = Array.from({ length: 5 }, (_, i) => crowdFrom(gate, `127.0.1.${i + 1}`, SHARE));
    const closed = (): number => others.reduce((sum, crowd) => sum + crowd.closed(), 0);
    const open = (): number => others.reduce((sum, crowd) => sum + answered(crowd), 0);
    await until(() => closed() + open() === 5 * SHARE, 20_000);
    expect(open()).toBeLessThanOrEqual(ALL);
    expect(open()).toBeGreaterThan(ALL / 2);
    expect(await rejected(gate, "connections")).toBeGreaterThan(0);
    for (const crowd of others) crowd[Symbol.dispose]();
  }, 120_000);
});
