/**
 * Sixty-four neighbours on the admin port. Anyone who may start pods has addresses, and the kubelet's address is
 * unknown, too. Each neighbour opens as many connections as it can, and reopens closed ones: with half a request, with
 * nothing, byte by byte, with hundreds of requests at once, for slow pages, without reading responses. Three probes
 * without an answer and the kubelet restarts the pod; a million requests that use memory until they are read do it
 * sooner.
 *
 * Strangers get one request per connection and two seconds for its header section, and the oldest connection of the
 * client with the most is evicted for a newcomer. Peers in admin.allow have reserved connections.
 */
import { describe, expect, it } from "vitest";
import { startCrowd } from "../../support/crowd.ts";
import { type Neighbourhood, startNeighbours } from "../../support/neighbours.ts";
import { useSallyport } from "../../support/pair.ts";
import { request } from "../../support/raw-client.ts";
import { peakResidentBytes } from "../../support/resident-memory.ts";
import { until } from "../../support/until.ts";

const OWN = "127.0.0.1";
const KUBELET = "127.0.0.2";
const MIB = 1024 * 1024;
const ask = (path: string, ...fields: string[]): string =>
  request([`GET ${path} HTTP/1.1`, "Host: localhost", ...fields]);

const ATTACKS: Readonly<Record<string, Omit<Neighbourhood, "port">>> = {
  "half heads": {
    connectionsPerAddress: 16,
    text: "GET /livez HTTP/1.1\r\nHost: a\r\nX-A: ",
    reads: true,
  },
  "nothing at all": { connectionsPerAddress: 16, text: "", reads: true },
  "heads that come byte by byte": { connectionsPerAddress: 8, text: "G", everyMs: 50, reads: true },
  "requests by the hundred, answers unread": {
    connectionsPerAddress: 16,
    text: ask("/livez", `X-A: ${"a".repeat(300)}`).repeat(300),
    reads: false,
  },
  "large answers unread": { connectionsPerAddress: 16, text: ask("/metrics"), reads: false },
  "large answers read": { connectionsPerAddress: 4, text: ask("/metrics"), reads: true },
  "a page that a backend takes long for": {
    connectionsPerAddress: 16,
    text: ask("/slow").repeat(300),
    reads: true,
  },
  "connections that close at once": {
    connectionsPerAddress: 1,
    text: ask("/slow"),
    reads: false,
    leaves: true,
  },
};

/** Resolves with the milliseconds until a 200. Rejects if the connection ends without one, or after ten seconds. */
async function timeOf(port: number, from: string, path: string): Promise<number> {
  const begun = performance.now();
  const each = (socket: { write(text: string): void }): void => socket.write(ask(path));
  using one = startCrowd({ port }, 1, { from, each });
  const answer = (): string => one.received()[0] ?? "";
  await until(() => answer().includes("\r\n") || one.closed() === 1);
  expect(answer().split("\r\n", 1)[0]).toBe("HTTP/1.1 200 OK");
  return performance.now() - begun;
}

describe.each(Object.entries(ATTACKS))("Sallyport next to neighbours with %s", (_name, attack) => {
  const standing = useSallyport(() => "hang", {
    config: {
      admin: { allow: [OWN], probes: [{ path: "/slow", upstream: "app" }] },
    },
  });

  it("answers probes and allowed peers, within its memory limit", async () => {
    const { gate } = standing();
    const port = gate.adminPort;
    await startNeighbours({ port, ...attack });
    const times: number[] = [];
    for (let round = 0; round < 8; round += 1) {
      for (const path of ["/livez", "/readyz", "/startupz"]) {
        times.push(await timeOf(port, KUBELET, path));
      }
      times.push(await timeOf(port, OWN, "/-/drain"), await timeOf(port, OWN, "/metrics"));
    }
    // Far less on an idle machine; the kubelet waits one second.
    expect(times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]).toBeLessThan(1_000);
    expect(await peakResidentBytes(gate)).toBeLessThan(256 * MIB);
  }, 60_000);
});
