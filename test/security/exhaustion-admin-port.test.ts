/**
 * The admin port, fully occupied. A neighbour in the cluster can reach it for metrics and health. It opens as many
 * connections as the port accepts, each with half a head, and opens them again when they are closed: the kubelet gets
 * no answer from `/livez` and restarts the pod again and again, Prometheus gets no metrics, and `sallyport drain`
 * cannot connect. So one address gets only its share, and all peers outside `admin.allow` together get half; the
 * others, such as the pod's own loopback, have the rest. No one is turned away: a newcomer replaces the oldest
 * connection of the client with the most.
 */
import { describe, expect, it, onTestFinished } from "vitest";
import { createNetworks } from "../../src/lib/http/networks.ts";
import { type Admin, startAdmin } from "../../src/server/admin/admin-server.ts";
import { createResponseIds } from "../../src/lib/http/response-ids.ts";
import { probePages } from "../../src/server/admin/state-pages.ts";
import { type Crowd, startCrowd } from "../support/crowd.ts";
import { useSallyport } from "../support/pair.ts";
import { request } from "../support/raw-client.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { until } from "../support/until.ts";

const SHARE = 16;
const OTHERS = 256;
const OWN = "127.0.0.1";
const KUBELET = "127.0.0.2";
const neighbour = (index: number): string => `127.0.1.${index + 1}`;

const asking = (path: string): string => request([`GET ${path} HTTP/1.1`, "Host: a"]);

/** Opens connections from one address that send this text and stay open until the test is over. */
function held({ port }: { port: number }, count: number, from: string, bytes: string): Crowd {
  const crowd = startCrowd({ port }, count, { from, each: (socket) => socket.write(bytes) });
  onTestFinished(() => crowd[Symbol.dispose]());
  return crowd;
}

/** The status line of `/livez`; empty when the connection is closed at once. */
async function livez({ port }: { port: number }, from: string): Promise<string> {
  const bytes = asking("/livez");
  using one = startCrowd({ port }, 1, { from, each: (socket) => socket.write(bytes) });
  const answer = (): string => one.received()[0]?.split("\r\n", 1)[0] ?? "";
  await until(() => answer() !== "" || one.closed() === 1);
  return answer();
}

describe("Sallyport", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: { admin: { allow: [OWN] } },
  });

  it("answers everyone else while one neighbour opens as many connections as it can", async () => {
    const admin = { port: standing().gate.adminPort };
    const crowd = held(admin, 130, neighbour(0), "GET /livez HTTP/1.1\r\nHost: a\r\nX-A: ");
    await until(() => crowd.open() + crowd.closed() === 130);
    for (const from of [KUBELET, OWN]) expect(await livez(admin, from)).toBe("HTTP/1.1 200 OK");
  });
});

describe("the admin listener", () => {
  /** One whose page `/held` is never answered, and that allows one address. */
  async function adminPort(): Promise<Admin> {
    const never = Promise.withResolvers<never>();
    const admin = await startAdmin({
      host: OWN,
      port: 0,
      allow: createNetworks([OWN]),
      log: recordedLog(),
      nextId: createResponseIds(0),
      pages: [
        ...probePages({
          started: () => true,
          livenessFailures: () => [],
          checks: () => [],
          dependencies: async () => [],
        }),
        { path: "/held", method: "GET", audience: "everybody", answer: () => never.promise },
      ],
    });
    onTestFinished(() => admin.close());
    return admin;
  }

  it("gives one address its share: a newcomer takes the place of the oldest", async () => {
    const admin = await adminPort();
    const crowd = held(admin, SHARE * 2, neighbour(0), asking("/held"));
    await until(() => crowd.closed() === SHARE);
    expect(await livez(admin, neighbour(0))).toBe("HTTP/1.1 200 OK");
    expect(await livez(admin, KUBELET)).toBe("HTTP/1.1 200 OK");
    expect(crowd.closed()).toBe(SHARE + 1);
  });

  it("evicts a client with half a head before one that waits for an answer", async () => {
    const admin = await adminPort();
    const half = held(admin, 2, neighbour(0), "GET /livez HTTP/1.1\r\nHost: a\r\n");
    const asked = held(admin, SHARE - 2, neighbour(0), asking("/held"));
    await until(() => half.open() + asked.open() === SHARE);
    expect(await livez(admin, neighbour(0))).toBe("HTTP/1.1 200 OK");
    expect(await livez(admin, neighbour(0))).toBe("HTTP/1.1 200 OK");
    await until(() => half.closed() > 0);
    expect(asked.closed()).toBe(0);
  });

  it("gives a stranger one request per connection, two seconds for its head, and no long head", async () => {
    const admin = await adminPort();
    const two = held(admin, 1, KUBELET, asking("/livez") + asking("/livez"));
    await until(() => two.closed() === 1);
    expect(two.received()[0]?.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(1);
    expect(two.received()[0]).toContain("Connection: close");

    const began = performance.now();
    const slow = held(admin, 1, KUBELET, "GET /livez HTTP/1.1\r\nHost: a\r\n");
    const long = (bytes: number): string =>
      request(["GET /livez HTTP/1.1", "Host: a", `X-A: ${"a".repeat(bytes)}`]);
    const large = held(admin, 1, KUBELET, long(9_000));
    const own = held(admin, 1, OWN, long(60_000));
    await until(() => slow.closed() === 1);
    expect(performance.now() - began).toBeGreaterThan(1_900);
    expect(slow.received()[0]).toMatch(/^HTTP\/1\.1 408 .*"success":false/s);
    await until(() => large.closed() === 1 && (own.received()[0] ?? "") !== "");
    expect(large.received()[0]).toMatch(/^HTTP\/1\.1 431 /);
    expect(own.received()[0]).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("answers two pipelined requests once, and a flood of them not at all", async () => {
    const admin = await adminPort();
    const two = held(admin, 1, neighbour(0), asking("/livez").repeat(2));
    const flood = held(admin, 1, neighbour(1), asking("/livez").repeat(1_000));
    await until(() => two.closed() + flood.closed() === 2);
    expect(two.received()[0]?.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
    expect(flood.received()[0] ?? "").toBe("");
  });

  it("answers an allowed peer when neighbours have taken everything else", async () => {
    const admin = await adminPort();
    const crowds = Array.from({ length: OTHERS / SHARE }, (_none, index) =>
      held(admin, SHARE, neighbour(index), asking("/held")),
    );
    await until(() => crowds.every((crowd) => crowd.open() === SHARE));
    expect(await livez(admin, KUBELET)).toBe("HTTP/1.1 200 OK");
    const own = held(admin, SHARE * 2, OWN, asking("/held"));
    await until(() => own.open() === SHARE * 2);
    expect(await livez(admin, OWN)).toBe("HTTP/1.1 200 OK");
    expect(own.closed()).toBe(0);
    // The kubelet has got its answer and closed its connection.
    const gone = crowds.reduce((sum, crowd) => sum + crowd.closed(), 0);
    expect(gone).toBe(1);
  });
});
