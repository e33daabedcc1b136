/**
 * One client takes all connections to a backend. A proxy with a limited number of them gives them to whichever request
 * comes first. So a single address with a few hundred connections and almost no traffic keeps everyone else out: with
 * bodies that trickle, with endless digits of a chunk size, or simply with requests that take the backend long, and
 * more of them in the queue. And if slow clients are disconnected for waiting ones, an attacker who requests all
 * connections can get other clients' slow downloads cut off.
 *
 * Sallyport gives the next connection to the client with the fewest, lets a newcomer into a full queue in place of the
 * last request of the client with the most, and disconnects a slow client only if it has more than the one that waits.
 * IPv6 addresses of one /64 are one client.
 */
import type { Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask } from "../../support/ask.ts";
import { dribble, startCrowd, type Crowd } from "../../support/crowd.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { logLine } from "../../support/log-line.ts";
import { startNaiveProxy } from "../../support/naive.ts";
import { use } from "../../support/pair.ts";
import { openSocket, type Peer, request } from "../../support/raw-client.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const PLACES = 4;
const WAITING = 4;
/** More than there is room for. */
const CROWD = 24;
const STRANGER = "127.0.0.2";
/** Several times what the system and Sallyport buffer for a client that does not read. */
const LARGE = 32_000_000;

const CHUNKED = request([
  "POST /public/x HTTP/1.1",
  "Host: localhost",
  "Transfer-Encoding: chunked",
]);
const LONG = request(["POST /public/x HTTP/1.1", "Host: localhost", "Content-Length: 100000"]);
const SLOW = request(["GET /public/slow?ms=300 HTTP/1.1", "Host: localhost"]);

/** Each holds a connection as long as possible. */
const HOLDING: Readonly<Record<string, (socket: Socket) => void>> = {
  "bodies that dribble": (socket) => {
    socket.write(`${LONG}a`);
    dribble(socket, "a", 100);
  },
  "chunks that dribble": (socket) => {
    socket.write(`${CHUNKED}1\r\na\r\n`);
    dribble(socket, "1\r\na\r\n", 100);
  },
  "a chunk whose size never ends": (socket) => {
    socket.write(CHUNKED);
    dribble(socket, "0", 100);
  },
  "requests that take the backend long": (socket) => {
    // Sends the next request whatever the response is.
    socket.on("data", () => setTimeout(() => socket.write(SLOW), 20));
    socket.write(SLOW);
  },
};

function startStranger(peer: Peer, each: (socket: Socket) => void): Crowd {
  const crowd = startCrowd(peer, CROWD, { from: STRANGER, each });
  onTestFinished(() => crowd[Symbol.dispose]());
  return crowd;
}

describe("Sallyport", () => {
  const standing = use(startEchoBackend, (target) =>
    startSallyport({
      target,
      config: {
        upstreams: {
          app: { connections: PLACES, queue: { length: WAITING, timeout: "10s" } },
        },
      },
    }),
  );

  const untilLoad = (inFlight: number, waiting: number): Promise<void> =>
    until(async () => {
      const { value } = await scrape(standing().gate);
      return (
        value('sallyport_upstream_requests_in_flight{upstream="app"}') === inFlight &&
        value('sallyport_upstream_queue_length{upstream="app"}') === waiting
      );
    });

  /** Starts the stranger's attack. Resolves once all connections and queue places are taken. */
  async function attack(each: (socket: Socket) => void): Promise<Crowd> {
    const { gate } = standing();
    const refused = async (): Promise<number> =>
      (await scrape(gate)).value('sallyport_requests_rejected_total{reason="upstream_busy"}') ?? 0;
    const before = await refused();
    const stranger = startStranger(gate, each);
    await until(async () => (await refused()) > before);
    return stranger;
  }

  it.for(Object.entries(HOLDING))("serves others next to %s", async ([, each]) => {
    const { gate } = standing();
    const stranger = await attack(each);
    for (let asked = 0; asked < 5; asked += 1) {
      expect((await ask(gate, "/orders", { token: gate.token })).status).toBe(200);
    }
    for (const socket of stranger.sockets) socket.destroy();
    await untilLoad(0, 0);
  });

  it("does not cut off a slow download for a client with more connections", async () => {
    const { gate, backend } = standing();
    const victim = (await openSocket(gate)).pause();
    onTestFinished(() => void victim.destroy());
    victim.write(request([`GET /public/big?bytes=${LARGE} HTTP/1.1`, "Host: localhost"]));
    await until(() => backend.requests.some(({ url }) => url.startsWith("/public/big")));
    const before = gate.log().length;
    const asking = request(["GET /public/slow?ms=700 HTTP/1.1", "Host: localhost"]);
    const stranger = await attack((socket) => {
      socket.on("data", () => setTimeout(() => socket.write(asking), 100));
      socket.write(asking);
    });
    // Enough to have waited longer than the limit for a slow client.
    await until(() => {
      const lines = gate.log().slice(before);
      return (
        lines.filter(({ path, status }) => path === "/public/slow" && status === 200).length >=
        8 * PLACES
      );
    }, 40_000);
    victim.resume();
    await until(() => victim.bytesRead >= LARGE);
    expect(await logLine(gate, { path: "/public/big" })).toMatchObject({ reason: "ok" });
    for (const socket of stranger.sockets) socket.destroy();
    await untilLoad(0, 0);
  }, 60_000);

  it("cuts off an unread download of a client with more connections", async () => {
    const { gate } = standing();
    const path = "/public/unread/big";
    const stranger = await attack((socket) => {
      socket.pause();
      socket.write(request([`GET ${path}?bytes=${LARGE} HTTP/1.1`, "Host: localhost"]));
    });
    expect((await ask(gate, "/orders", { token: gate.token })).status).toBe(200);
    await logLine(gate, { path, client: STRANGER, reason: "slow_client" });
    for (const socket of stranger.sockets) socket.destroy();
    await untilLoad(0, 0);
  });
});

describe("plain http-proxy-3", () => {
  const standing = use(startEchoBackend, (target) => startNaiveProxy(target));

  it("keeps a connection to the backend for each indefinitely", async () => {
    const { gate, backend } = standing();
    const stranger = startStranger(gate, (socket) => {
      HOLDING["chunks that dribble"]?.(socket);
    });
    await until(() => backend.connectionCount() === CROWD);
    // Longer than the limit for a slow client.
    expect((await ask(gate, "/public/slow?ms=800")).status).toBe(200);
    expect(stranger.closed()).toBe(0);
    expect(backend.abandoned()).toBe(0);
  });
});
