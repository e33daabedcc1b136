/**
 * A client that does not read its response holds a connection to the backend only while no other request waits for one.
 */
import { once } from "node:events";
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { ask } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { logLine } from "../../support/log-line.ts";
import { openSocket, request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

/** Several times what the system and Sallyport buffer for a client that does not read. */
const LARGE = 32_000_000;
/** The upstreams and their connection limits. */
const CONNECTIONS = { one: 1, two: 2 };

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  const shared = { targets: [backend.url], queue: { timeout: "10s" } };
  const names = Object.keys(CONNECTIONS);
  gate = await startSallyport({
    target: backend.url,
    config: {
      routes: names.map((name) => ({ name, path: `/${name}/`, auth: "none", upstream: name })),
      upstreams: Object.fromEntries(
        Object.entries(CONNECTIONS).map(([name, connections]) => [
          name,
          { ...shared, connections },
        ]),
      ),
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

/** Sends a request and reads nothing. Resolves when the backend has the request. */
async function askWithoutReading(path: string): Promise<Socket> {
  const socket = (await openSocket(gate)).pause();
  onTestFinished(() => void socket.destroy());
  socket.write(request([`GET ${path} HTTP/1.1`, "Host: localhost"]));
  await until(() => backend.requests.some(({ url }) => url === path));
  return socket;
}

const large = (path: string): string => `${path}/big?bytes=${LARGE}`;

const untilInFlight = (upstream: string, count: number): Promise<void> =>
  until(async () => {
    const { value } = await scrape(gate);
    return value(`sallyport_upstream_requests_in_flight{upstream="${upstream}"}`) === count;
  });

/** Resumes reading until one of the clients has its complete response. */
async function untilOneHasAll(...sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.resume();
  await until(() => sockets.some(({ bytesRead }) => bytesRead >= LARGE), 10_000);
}

it("disconnects a client that does not read when another request waits", async () => {
  const slow = await askWithoutReading(large("/one/slow"));
  const closed = once(slow, "close");
  expect((await ask(gate, "/one/next")).status).toBe(200);
  expect(await logLine(gate, { path: "/one/slow/big" })).toMatchObject({ reason: "slow_client" });
  slow.resume();
  await closed;
  expect(slow.bytesRead).toBeLessThan(LARGE);
  await untilInFlight("one", 0);
});

it("does not limit such a client when no other request waits", async () => {
  const slow = await askWithoutReading(large("/two/patient"));
  // Longer than the limit while another request waits.
  expect((await ask(gate, "/two/slow?ms=5500")).status).toBe(200);
  await untilOneHasAll(slow);
  expect(await logLine(gate, { path: "/two/patient/big" })).toMatchObject({ reason: "ok" });
});

it("disconnects only as many clients as there are waiting requests", async () => {
  const paths = ["/two/a", "/two/b"];
  const both = await Promise.all(paths.map((path) => askWithoutReading(large(path))));
  expect((await ask(gate, "/two/next")).status).toBe(200);
  await untilOneHasAll(...both);
  const reasons = await Promise.all(
    paths.map(async (path) => (await logLine(gate, { path: `${path}/big` }))["reason"]),
  );
  expect(new Set(reasons)).toEqual(new Set(["ok", "slow_client"]));
});
