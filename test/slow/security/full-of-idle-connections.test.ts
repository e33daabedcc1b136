/**
 * All connections taken but idle. With a share per address, an attacker with a few addresses can still take all
 * connections, with half a request on each or none at all, and no other client gets in until they time out.
 *
 * When all are taken, Sallyport closes the oldest idle connection of the client with the most, and accepts the
 * newcomer. It never closes connections with a forwarded request for that, or connections of a client with no more than
 * the newcomer. Nor does a crowd of addresses with one connection each replace those of a client with a valid token,
 * which may just send its next request, while such clients have few of all connections.
 */
import { expect, describe, it } from "vitest";
import { startCrowd } from "../../support/crowd.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { useNaiveProxy, use } from "../../support/pair.ts";
import { request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const ALL = 24;
const SHARE = 12;
const ATTACKERS = ["127.0.0.66", "127.0.0.67"] as const;
/** One connection may belong to the program that starts Sallyport, and close meanwhile. */
const NEWCOMERS = ["127.0.0.6", "127.0.0.7", "127.0.0.8", "127.0.0.9"];
const SERVED = "127.0.0.5";
const GET = request(["GET /public/x HTTP/1.1", "Host: localhost"]);
const SLOW = request(["GET /public/slow?ms=1500 HTTP/1.1", "Host: localhost"]);
const HALF_LOGIN = request([
  "POST /api/authenticate HTTP/1.1",
  "Host: localhost",
  "Content-Type: application/json",
  "Content-Length: 100",
]);

const KINDS: Readonly<Record<string, string>> = {
  "that are idle": "",
  "with half a head": GET.slice(0, -2),
  "with half a login": `${HALF_LOGIN}{`,
};

/** Returns how many connections were closed because all were taken. */
async function refused(gate: Sallyport): Promise<number> {
  const page = await scrape(gate);
  return page.value('sallyport_requests_rejected_total{reason="connections"}') ?? 0;
}

describe.each([true, false])("Sallyport, TLS %s", (tls) => {
  const standing = use(startEchoBackend, (target) =>
    startSallyport({
      target,
      config: {
        server: {
          ...(tls ? {} : { tls: "off" }),
          limits: { connections: ALL, connectionsPerAddress: SHARE },
        },
      },
    }),
  );

  // Connections left open by a failed try would let a retry pass.
  it.each(Object.entries(KINDS))(
    "accepts a newcomer next to connections %s",
    { retry: 0 },
    async (_, text) => {
      const { gate } = standing();
      const before = await refused(gate);
      // The oldest connections of the heaviest client, but not idle.
      using busy = startCrowd(gate, 2, {
        tls,
        from: ATTACKERS[0],
        each: (socket) => socket.write(SLOW),
      });
      await until(() => busy.open() === 2);
      const attacker = (from: string, count: number) =>
        startCrowd(gate, count, {
          tls,
          from,
          each: (socket) => text === "" || socket.write(text),
        });
      using one = attacker(ATTACKERS[0], SHARE - 2);
      using other = attacker(ATTACKERS[1], SHARE);
      await until(() => one.open() + other.open() === ALL - 2);
      const newcomers = NEWCOMERS.map((from) =>
        startCrowd(gate, 1, { tls, from, each: (socket) => socket.write(GET) }),
      );
      await until(() => newcomers.every((each) => each.received()[0]?.includes("200 OK") ?? false));
      for (const each of newcomers) each[Symbol.dispose]();
      expect(one.closed() + other.closed()).toBeGreaterThanOrEqual(NEWCOMERS.length - 1);
      expect(await refused(gate)).toBeGreaterThanOrEqual(before + NEWCOMERS.length - 1);
      await until(() => busy.received().every((answer) => answer.includes("200 OK")));
    },
  );
});

describe("a client that was served", () => {
  it.each([
    ["keeps few idle connections", ALL / 4, 0],
    ["loses idle connections of many", ALL / 4 + 1, 1],
  ])("%s next to a crowd of strangers", async (_name, count, lost) => {
    await using backend = await startEchoBackend();
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        server: { tls: "off", limits: { connections: ALL, connectionsPerAddress: SHARE } },
      },
    });
    const get = request([
      "GET /private/x HTTP/1.1",
      "Host: localhost",
      `Authorization: Bearer ${gate.token}`,
    ]);
    using served = startCrowd(gate, count, {
      from: SERVED,
      each: (socket) => socket.write(get),
    });
    await until(() => served.received().every((answer) => answer.includes("200 OK")));
    const strangers = Array.from({ length: ALL * 2 }, (_none, i) =>
      startCrowd(gate, 1, { from: `127.0.1.${i + 1}` }),
    );
    // Each one beyond the limit is refused, or replaces another.
    await until(async () => (await refused(gate)) >= strangers.length + count - ALL);
    const before = served.closed();
    // It replaces a stranger.
    using another = startCrowd(gate, 1, { from: SERVED, each: (socket) => socket.write(get) });
    await until(() => another.received()[0]?.includes("200 OK") ?? false);
    for (const crowd of strangers) crowd[Symbol.dispose]();
    expect([before, served.closed()]).toEqual([lost, lost]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("never closes a connection", async () => {
    const { gate } = standing();
    using crowd = startCrowd(gate, ALL * 4, { from: "127.0.0.6" });
    await until(() => crowd.open() === ALL * 4);
    await expect(until(() => crowd.closed() > 0, 1_000)).rejects.toThrow();
  });
});
