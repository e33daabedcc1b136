/** Who holds a place at a backend while its client does not read: no longer than those can bear who wait for one. */
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

/** Several times what the system and Sallyport hold for a client that does not read. */
const LARGE = 32_000_000;
/** The upstreams, and how many requests each takes at a time. */
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

/** Asks, and reads nothing; the backend has been asked when this resolves. */
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

/** Reads what it did not read, until one of these has its whole answer. */
async function untilOneHasAll(...sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.resume();
  await until(() => sockets.some(({ bytesRead }) => bytesRead >= LARGE), 10_000);
}

it("makes a client that does not read give way to one that waits", async () => {
  const slow = await askWithoutReading(large("/one/slow"));
  const closed = once(slow, "close");
  expect((await ask(gate, "/one/next")).status).toBe(200);
  expect(await logLine(gate, { path: "/one/slow/big" })).toMatchObject({ reason: "slow_client" });
  slow.resume();
  await closed;
  expect(slow.bytesRead).toBeLessThan(LARGE);
  await untilInFlight("one", 0);
});

it("lets it wait for as long as it likes where nobody needs its place", async () => {
  const slow = await askWithoutReading(large("/two/patient"));
  // Longer than it would have had if another had waited.
  expect((await ask(gate, "/two/slow?ms=5500")).status).toBe(200);
  await untilOneHasAll(slow);
  expect(await logLine(gate, { path: "/two/patient/big" })).toMatchObject({ reason: "ok" });
});

it("makes no more give way than there are who wait", async () => {
  const paths = ["/two/a", "/two/b"];
  const both = await Promise.all(paths.map((path) => askWithoutReading(large(path))));
  expect((await ask(gate, "/two/next")).status).toBe(200);
  await untilOneHasAll(...both);
  const reasons = await Promise.all(
    paths.map(async (path) => (await logLine(gate, { path: `${path}/big` }))["reason"]),
  );
  expect(new Set(reasons)).toEqual(new Set(["ok", "slow_client"]));
});
