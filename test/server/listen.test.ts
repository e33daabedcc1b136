/** What a listener keeps about connections that have closed, and which time limits apply to new ones. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, it, onTestFinished, vi } from "vitest";
import { UNLIMITED } from "../../src/server/listener/connection-ledger.ts";
import { createNetworks } from "../../src/lib/http/networks.ts";
import { listen } from "../../src/server/listener/listen.ts";
import type { ListenOptions } from "../../src/server/listener/listen-options.ts";
import { FairReading } from "../../src/server/listener/reading/fair-reading.ts";
import { ReadingClients } from "../../src/server/listener/reading/reading-client.ts";
import { testCertificates } from "../support/certificates.ts";
import { recordedLog } from "../support/recorded-log.ts";

const CONNECTIONS = 40;

/** Starts a listener for this many connections. */
async function start(
  connections: number,
  { proxyProtocol = false, http2 = false, tls }: Partial<ListenOptions> = {},
) {
  let refused = 0;
  const of = vi.spyOn(ReadingClients.prototype, "of");
  onTestFinished(() => of.mockRestore());
  const reading = new FairReading(
    { now: () => 0, monotonic: () => performance.now() },
    () => undefined,
  );
  const options = {
    host: "127.0.0.1",
    port: 0,
    shared: false,
    tls,
    http2,
    counts: undefined,
    limits: { headerBytes: 8192, streams: 1, connections, connectionsPerAddress: 1_000 },
    proxyProtocol,
    trustedProxies: createNetworks(["127.0.0.1"]),
    timeouts: { header: 5_000, request: 5_000, keepAlive: 5_000, stall: 5_000 },
    buffered: { ...UNLIMITED, open: () => undefined },
    reading,
    nextId: () => 1,
    rules: { current: { realm: "test" } },
    log: recordedLog(),
    observer: {
      requestRefused: () => void (refused += 1),
      requestStarted: () => undefined,
      requestFinished: () => undefined,
    },
  };
  const listener = await listen(options as unknown as ListenOptions);
  onTestFinished(async () => {
    listener.closeAll();
    await listener.close();
  });
  return {
    port: listener.port,
    refused: () => refused,
    /** The clients that fair reading knows. */
    clients: () => (of.mock.contexts[0] as ReadingClients).size,
    /** Reloads with another time limit for heads. */
    setHeaderMs: (header: number) =>
      listener.change({ ...options, timeouts: { ...options.timeouts, header } }),
  };
}

async function open(port: number, text = ""): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

it("forgets the clients that proxies have named", async () => {
  const { port, clients } = await start(CONNECTIONS, { proxyProtocol: true });
  for (let i = 0; i < CONNECTIONS; i += 1) {
    const socket = await open(port, `PROXY TCP4 192.0.2.${i} 127.0.0.1 4660 80\r\nGET`);
    socket.end();
    await once(socket.resume(), "close");
  }
  await expect.poll(clients).toBe(0);
});

it("keeps nothing about clients whose connections it refuses", async () => {
  const { port, refused, clients } = await start(1);
  await open(port);
  for (let i = 0; i < CONNECTIONS; i += 1) await once((await open(port)).resume(), "close");
  expect(refused()).toBe(CONNECTIONS);
  await expect.poll(clients).toBe(1);
});

it.each([{ proxyProtocol: true }, { http2: true }])(
  "a reload changes the time for the first bytes of a connection: %j",
  async (offered) => {
    const { port, setHeaderMs } = await start(CONNECTIONS, offered);
    setHeaderMs(50);
    const began = performance.now();
    await once((await open(port)).resume(), "close");
    expect(performance.now() - began).toBeLessThan(4_000);
  },
);

it("lets fair reading have a TLS connection after Node has listeners for it, so that it has the last word", async () => {
  const { ca, server } = await testCertificates();
  const listeners: number[] = [];
  const track = vi.spyOn(FairReading.prototype, "track");
  onTestFinished(() => track.mockRestore());
  track.mockImplementation((secured) => void listeners.push(secured.listenerCount("resume")));
  const ticketKey = { key: Buffer.alloc(48).toString("base64"), shared: false };
  const { port } = await start(10, { tls: { ...server, minVersion: "TLSv1.3", ticketKey } });
  const client = connectTls({ port, ca, servername: "localhost" });
  onTestFinished(() => void client.destroy());
  await once(client, "secureConnect");
  await vi.waitFor(() => expect(listeners).toEqual([1]));
});
