/** A soak that leaks fails: descriptors, sockets, threads, timers, memory, and counts that do not add up. */
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { LogBook } from "../../soak/accounts/log-book.ts";
import { openDescriptors, processState } from "../../soak/machine/process-state.ts";
import { comeToRest, type Rest } from "../../soak/machine/rest.ts";
import type { Sample } from "../../soak/machine/samples.ts";
import { fitTrend } from "../../soak/machine/trend.ts";
import { judgeResources } from "../../soak/report/resources.ts";
import { judgeTotals } from "../../soak/report/totals.ts";
import { listeningPort } from "../support/listening-port.ts";
import { type Scrape, scrape } from "../support/scrape.ts";
import { failures } from "./failures.ts";

const MIB = 1024 * 1024;

/** What the metrics page with this text is read as. */
async function scraped(text: string): Promise<Scrape> {
  const server = createHttpServer((_request, response) => response.end(text));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await scrape({ adminPort: listeningPort(server) });
  } finally {
    server.close();
  }
}

const metrics = await scraped("");

function rest(
  more: Partial<Rest> & { descriptors?: Record<string, number>; mib?: number } = {},
): Rest {
  const { descriptors = { socket: 2, file: 3 }, mib = 100, ...others } = more;
  const state = { descriptors, residentBytes: mib * MIB, threads: 10 };
  return {
    state,
    metrics,
    liveHeapBytes: 20 * MIB,
    resources: { Timeout: 1 },
    restless: [],
    ...others,
  };
}

/** A look every second, with so many MiB more in each hour, and the noise of a collector. */
function samples(mibPerHour: number, more: Partial<Sample> = {}): readonly Sample[] {
  return Array.from({ length: 1800 }, (_, seconds) => {
    const bytes = (100 + (mibPerHour * seconds) / 3600 + (seconds % 7)) * MIB;
    const memory = { residentBytes: bytes, heapBytes: bytes };
    const quiet = { descriptors: 5, inFlight: 0, loopLagSeconds: 0.01, ready: true };
    return { seconds, ...memory, ...quiet, ...more };
  });
}

const steady = samples(0);

test("nothing that has grown passes", () => {
  expect(failures(judgeResources({ base: rest(), end: rest(), samples: steady }))).toEqual([]);
});

test.each<[string, Rest]>([
  ["descriptors", rest({ descriptors: { socket: 2, file: 4 } })],
  ["timers and handles", rest({ resources: { Timeout: 2 } })],
  ["resident memory at the end", rest({ mib: 200 })],
  ["held on the heap at the end", rest({ liveHeapBytes: 30 * MIB })],
  ["at rest when all clients had left", rest({ restless: ["1 socket"] })],
  ["threads", rest({ state: { ...rest().state, threads: 11 } })],
])("more of it fails: %s", (property, end) => {
  expect(failures(judgeResources({ base: rest(), end, samples: steady }))).toEqual([property]);
});

test("a socket in the place of a file fails", () => {
  const end = rest({ descriptors: { socket: 3, file: 2 } });
  expect(failures(judgeResources({ base: rest(), end, samples: steady }))).toEqual(["sockets"]);
});

test("a leak is reported in MiB per hour, and a short run does not judge it", () => {
  const [base, end] = [rest(), rest()];
  const leaking = samples(300);
  const findings = judgeResources({ base, end, samples: leaking });
  expect(failures(findings)).toEqual(["resident memory, trend", "heap in use, trend"]);
  const told = findings.find(({ property }) => property === "heap in use, trend")?.figure;
  expect(Number.parseFloat(told ?? "")).toBeCloseTo(300, -1);
  expect(failures(judgeResources({ base, end, samples: leaking.slice(0, 600) }))).toEqual([]);
});

test("a line is fitted as by hand", () => {
  expect(fitTrend([1, 3, 5, 7].map((y, x) => ({ x, y })))).toEqual({ slope: 2, error: 0 });
  expect(fitTrend([{ x: 0, y: 0 }])).toBeUndefined();
});

test.each<[string, Partial<Sample>]>([
  ["event loop's delay (p99), median", { loopLagSeconds: 1 }],
  ["looks at which it was not ready", { ready: false }],
])("a bad time on the way fails: %s", (property, more) => {
  const found = judgeResources({ base: rest(), end: rest(), samples: samples(0, more) });
  expect(failures(found)).toEqual([property]);
});

test("a socket that is left open is seen in the process", async () => {
  const before = processState(process.pid);
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const after = processState(process.pid);
  expect(after.descriptors["socket"]).toBe((before.descriptors["socket"] ?? 0) + 1);
  expect(openDescriptors(after)).toBeGreaterThan(openDescriptors(before));
  server.close();
});

/** The state of this process, in which `/metrics` tells of so many sockets at each scrape, then always of the last. */
async function restAfter(told: readonly number[]): Promise<Rest> {
  const counts = [...told];
  const server = createHttpServer((_request, response) => {
    const count = counts.length > 1 ? counts.shift() : counts[0];
    response.end(`nodejs_active_resources{type="TCPSocketWrap"} ${count}\n`);
  });
  const inspector = new WebSocketServer({ server });
  inspector.on("connection", (socket) => {
    socket.on("message", (data: Buffer) => {
      const { id }: { id: number } = JSON.parse(data.toString());
      socket.send(JSON.stringify({ id, result: { usedSize: MIB } }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    return await comeToRest({
      pid: process.pid,
      adminPort: listeningPort(server),
      inspector: `ws://127.0.0.1:${listeningPort(server)}`,
      sockets: Number.POSITIVE_INFINITY,
      base: rest({ descriptors: { socket: 1_000 }, resources: { TCPSocketWrap: 2 } }),
      also: () => undefined,
      timeoutMs: 300,
    });
  } finally {
    inspector.close();
    server.close();
  }
}

test("a socket that closes a moment later is not left open", async () => {
  const end = await restAfter([3, 2]);
  expect(end.restless).toEqual([]);
  expect(end.resources).toEqual({ TCPSocketWrap: 2 });
});

test("a socket that stays is told", async () => {
  expect((await restAfter([3])).restless).toEqual(["TCPSocketWrap: 3, at first 2"]);
});

test("a request that the metrics do not count, or count twice, fails", async () => {
  const book = new LogBook(() => undefined);
  book.read('{"level":"info","msg":"request","id":1,"method":"GET","route":"open","status":200}');
  const page = (count: number): Promise<Scrape> =>
    scraped(`sallyport_http_requests_total{route="open",method="GET",code="200"} ${count}\n`);
  expect(failures(judgeTotals(book, await page(1)))).toEqual([]);
  for (const count of [0, 2]) {
    expect(failures(judgeTotals(book, await page(count)))).toEqual([
      "requests counted, by route, method and code",
    ]);
  }
});
