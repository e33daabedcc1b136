/**
 * A silent backend affects the others. Requests and upgrades pile up for one that accepts connections but never
 * answers; each holds a connection to it, and memory. Without a limit a proxy opens thousands of half-open upgrades,
 * until it has no descriptor left for the healthy backends. And the resources of a client that disconnects, above all
 * its connection to the backend, must be released whenever it leaves: before its token is verified, in the queue, or in
 * mid-handshake.
 *
 * `upstreams.<name>.connections` and `queue` limit the requests at one upstream. Excess requests get 503 at once, or
 * within `queue.timeout`. Other upstreams are not affected.
 */
import { describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startCrowd, type Crowd } from "../../support/crowd.ts";
import { signingPair, signToken } from "../../support/foreign-keys.ts";
import { readMessages } from "../../support/http-reader.ts";
import { logLine } from "../../support/log-line.ts";
import { useNaiveProxy, useSallyport } from "../../support/pair.ts";
import { startPlainBackend } from "../../support/plain-backend.ts";
import { resourcesOf, untilDescriptorsAreBack } from "../../support/proxy-resources.ts";
import type { RawScript } from "../../support/raw-backend.ts";
import { openSocket, request } from "../../support/raw-client.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { slowdownUnder } from "../../support/steadiness.ts";
import { until } from "../../support/until.ts";

const CROWD = 120;
const FEW = 6;
const PLACES = 6;
const WAITING = 4;

const script: RawScript = ({ startLine }) =>
  startLine.includes("/silent/")
    ? "hang"
    : { write: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" };

const UPGRADE = request([
  ...["GET /public/silent/ws HTTP/1.1", "Host: localhost", "Sec-WebSocket-Version: 13"],
  ...["Connection: Upgrade", "Upgrade: websocket"],
  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
]);
const GET = request(["GET /public/silent/x HTTP/1.1", "Host: localhost", "Connection: close"]);

describe("Sallyport", () => {
  const standing = useSallyport(script);
  const open = { auth: "none" };
  const limited = {
    connections: PLACES,
    queue: { length: WAITING, timeout: "300ms" },
    timeouts: { connect: "5s", response: "500ms" },
    websocket: { handshake: "500ms" },
  };

  it("limits requests and half-open upgrades, and other upstreams are unaffected", async () => {
    const { backend } = standing();
    const targets = [backend.url];
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        routes: [
          { ...open, name: "silent", path: "/public/silent/", upstream: "silent" },
          { ...open, name: "well", path: "/public/", upstream: "app" },
        ],
        upstreams: { app: {}, silent: { targets, ...limited } },
      },
    });
    const resources = await resourcesOf(gate);
    await ask(gate, "/public/x");
    const base = await resources.descriptors();
    let most = 0;
    const statuses: number[] = [];
    const slower = await slowdownUnder(gate, "/public/x", async () => {
      // Connections open a few at a time, the requests all at once, so that TLS handshakes are not measured.
      using crowds = new DisposableStack();
      const all: Crowd[] = [];
      while (all.length < CROWD / FEW) {
        const few = crowds.use(startCrowd(gate, FEW));
        await until(() => few.open() === FEW);
        all.push(few);
      }
      const sockets = all.flatMap((few) => few.sockets);
      for (const [index, socket] of sockets.entries()) {
        socket.write(index % 2 === 0 ? UPGRADE : GET);
      }
      await until(async () => {
        const { value } = await scrape(gate);
        const inFlight = value('sallyport_upstream_requests_in_flight{upstream="silent"}') ?? 0;
        const waiting = value('sallyport_upstream_queue_length{upstream="silent"}') ?? 0;
        expect(waiting).toBeLessThanOrEqual(WAITING);
        most = Math.max(most, inFlight);
        return sockets.every((socket) => socket.closed);
      }, 12_000);
      for (const text of all.flatMap((few) => few.received())) {
        const { messages } = readMessages("response", Buffer.from(text, "latin1"), true);
        expect(messages).toHaveLength(1);
        statuses.push(Number(messages[0]?.startLine.slice(9, 12)));
        expect(JSON.parse(messages[0]?.body.toString() ?? "")).toMatchObject({ success: false });
      }
    });
    expect(slower).toBeLessThanOrEqual(3);
    expect(most).toBe(PLACES);
    expect(new Set(statuses)).toEqual(new Set([503, 504]));
    await untilDescriptorsAreBack(resources, base);
    expect((await scrape(gate)).value("sallyport_http_requests_in_flight")).toBe(0);
  }, 60_000);

  it("releases its connections when all clients disconnect in mid-handshake", async () => {
    const { backend } = standing();
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        upstreams: {
          app: {
            ...limited,
            queue: { length: WAITING, timeout: "30s" },
            websocket: { handshake: "1m" },
          },
        },
      },
    });
    const both = async (inFlight: number, waiting: number): Promise<void> =>
      until(async () => {
        const { value } = await scrape(gate);
        return (
          value('sallyport_upstream_requests_in_flight{upstream="app"}') === inFlight &&
          value('sallyport_upstream_queue_length{upstream="app"}') === waiting
        );
      });
    for (let round = 0; round < 3; round += 1) {
      using crowd = startCrowd(gate, PLACES + WAITING, { each: (socket) => socket.write(UPGRADE) });
      await both(PLACES, WAITING);
      for (const socket of crowd.sockets) socket.destroy();
      await both(0, 0);
    }
    expect((await ask(gate, "/public/x")).status).toBe(200);
  });

  it("sends no request for a client that disconnected while its token was verified", async () => {
    const { backend } = standing();
    const pair = signingPair("late");
    let deliver: (() => void) | undefined;
    await using keys = await startPlainBackend((_request, response) => {
      deliver = () => response.end(JSON.stringify({ keys: [pair.jwk] }));
    });
    const issuer = { issuer: "https://id.example.com", audience: "orders", algorithms: ["ES256"] };
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        tokens: { trusted: [{ ...issuer, jwks: { url: `${keys.url}/jwks.json` } }] },
        upstreams: { app: { connections: 1, queue: { length: 0 } } },
      },
    });
    const seconds = Math.floor(Date.now() / 1000);
    const times = { iat: seconds, exp: seconds + 600 };
    const token = await signToken(pair, {
      iss: issuer.issuer,
      aud: "orders",
      sub: "zoe",
      ...times,
    });
    const leaving = await openSocket(gate);
    leaving.write(
      request(["GET /late HTTP/1.1", "Host: localhost", `Authorization: Bearer ${token}`]),
    );
    await until(async () => (await scrape(gate)).value("sallyport_http_requests_in_flight") === 1);
    leaving.destroy();
    await until(() => deliver !== undefined);
    // Once the proxy has accepted another connection, it knows that this one has ended.
    (await openSocket(gate)).destroy();
    deliver?.();
    expect(await logLine(gate, { path: "/late" })).toMatchObject({ status: 499 });
    expect(backend.seen()).not.toContain("GET /late");
    expect((await ask(gate, "/public/x")).status).toBe(200);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy(script);

  it("opens a connection to the backend for every half-open upgrade", async () => {
    const { gate, backend } = standing();
    using crowd = startCrowd(gate, CROWD, {
      each: (socket) => socket.write(UPGRADE.replace("\r\n", "\r\nAuthorization: Bearer good\r\n")),
    });
    await until(() => backend.requests().length === CROWD);
    expect(backend.connections.filter(({ socket }) => !socket.destroyed)).toHaveLength(CROWD);
    expect(crowd.closed()).toBe(0);
  });
});
