/**
 * All connections for one client. An attacker opens connections until the proxy accepts no more: each costs a
 * descriptor and, with TLS, a handshake, the most expensive thing that a stranger can request. They send nothing,
 * abandon a handshake, or stay idle. All other clients then find the proxy closed, although it has nothing to do.
 *
 * `server.limits.connectionsPerAddress` closes connections beyond the share of an address (or an IPv6 /64), at once and
 * before TLS. Timeouts close silent ones. Trusted proxies, which have many clients behind them, are not limited.
 */
import { describe, expect, it } from "vitest";
import { startCrowd } from "../../support/crowd.ts";
import { useNaiveProxy, useSallyport } from "../../support/pair.ts";
import { resourcesOf, untilDescriptorsAreBack } from "../../support/proxy-resources.ts";
import { request } from "../../support/raw-client.ts";
import { scrape } from "../../support/scrape.ts";
import { slowdownUnder } from "../../support/steadiness.ts";
import { until } from "../../support/until.ts";

const SHARE = 25;
const CROWD = 300;
const ATTACKER = "127.0.0.66";
const PROXY = "127.0.0.9";
const GET = request(["GET /public/x HTTP/1.1", "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(undefined, {
    config: {
      server: {
        trustedProxies: [PROXY],
        limits: { connectionsPerAddress: SHARE },
        timeouts: { header: "1s", keepAlive: "1s" },
      },
    },
  });
  const rejected = async (reason: string): Promise<number> =>
    (await scrape(standing().gate)).value(
      `sallyport_requests_rejected_total{reason="${reason}"}`,
    ) ?? -1;

  it("gives one address its share, closes the rest before TLS, and still answers others", async () => {
    const { gate } = standing();
    const resources = await resourcesOf(gate);
    const base = await resources.descriptors();
    const attack = async (): Promise<void> => {
      const refused = await rejected("connections_per_address");
      const handshakes = await rejected("tls_handshake");
      using crowd = startCrowd(gate, CROWD, { from: ATTACKER, tls: false });
      await until(() => crowd.closed() >= CROWD - SHARE);
      expect(await rejected("connections_per_address")).toBe(refused + CROWD - SHARE);
      // The others never begin their handshake.
      await until(() => crowd.closed() === CROWD);
      await until(async () => (await rejected("tls_handshake")) === handshakes + SHARE);
      expect(crowd.received().join("")).toBe("");
    };
    expect(await slowdownUnder(gate, "/public/x", attack)).toBeLessThanOrEqual(3);
    await untilDescriptorsAreBack(resources, base);
  }, 60_000);

  it("accepts it again once it has closed some", async () => {
    const { gate } = standing();
    using crowd = startCrowd(gate, SHARE, { from: ATTACKER, each: (socket) => socket.write(GET) });
    await until(() => crowd.received().every((text) => text.includes("200 OK")));
    using further = startCrowd(gate, 1, { from: ATTACKER });
    await until(() => further.closed() === 1);
    crowd.sockets[0]?.destroy();
    await until(async () => {
      using again = startCrowd(gate, 1, { from: ATTACKER });
      await until(() => again.open() + again.closed() > 0);
      return again.open() === 1;
    });
  });

  it("does not limit a trusted proxy", async () => {
    const { gate } = standing();
    const each = (socket: { write(text: string): unknown }): void => void socket.write(GET);
    using crowd = startCrowd(gate, SHARE * 2, { from: PROXY, each });
    await until(() => crowd.received().every((text) => text.includes("200 OK")));
  });

  it("closes idle and silent connections", async () => {
    const { gate } = standing();
    const resources = await resourcesOf(gate);
    const base = await resources.descriptors();
    using crowd = startCrowd(gate, SHARE, {
      from: ATTACKER,
      each: (socket, index) => void (index % 2 === 0 && socket.write(GET)),
    });
    await until(() => crowd.closed() === SHARE, 8_000);
    // Silence before the first request ends with 408; after a response, without one.
    const silent = crowd.received().filter((_text, index) => index % 2 === 1);
    expect(silent.filter((text) => text !== "" && !text.startsWith("HTTP/1.1 408 "))).toEqual([]);
    await untilDescriptorsAreBack(resources, base);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("keeps all connections of one address", async () => {
    const { gate } = standing();
    using crowd = startCrowd(gate, CROWD, { from: ATTACKER });
    await until(() => crowd.open() === CROWD);
    // Longer than Sallyport takes to close the last of them.
    await expect(until(() => crowd.closed() > 0, 2_000)).rejects.toThrow();
  });
});
