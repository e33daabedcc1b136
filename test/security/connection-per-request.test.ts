/**
 * One connection per request. Without an agent, http-proxy-3 opens and closes a connection to the backend for each
 * request: a burst of small requests uses up the pod's local ports (28,000 in TIME_WAIT), and takes three times as
 * long.
 */
import { describe, expect, it } from "vitest";
import { startNaiveProxy } from "../support/naive.ts";
import { use, useSallyport } from "../support/pair.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange, request, type Peer } from "../support/raw-client.ts";

const GET = request(["GET /public/x HTTP/1.1", "Host: localhost"]);

async function requestTwentyTimes(peer: Peer): Promise<void> {
  for (let count = 0; count < 20; count += 1) {
    expect((await exchange(peer, GET)).last.status).toBe(200);
  }
}

describe("Sallyport", () => {
  // No other test may have used its backend: all of its connections are counted.
  const standing = useSallyport(undefined, { withoutToken: true, config: {} });

  it("reuses its connection", async () => {
    const { gate, backend } = standing();
    await requestTwentyTimes(gate);
    expect(backend.connections).toHaveLength(1);
  });
});

describe("plain http-proxy-3", () => {
  const standing = use(startRawBackend, (target) => startNaiveProxy(target, { agent: false }));

  it("opens one for each request", async () => {
    const { gate, backend } = standing();
    await requestTwentyTimes(gate);
    expect(backend.connections).toHaveLength(20);
  });
});
