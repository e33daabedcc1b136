/** Which requests are cut off when their authorization changes, and which may finish. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Duplex } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { UNLIMITED } from "../../src/server/listener/connection-ledger.ts";
import { UNMETERED } from "../../src/server/listener/reading/fair-reading.ts";
import { Transfer } from "../../src/core/request/transfer.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { refuseUnderWay } from "../../src/server/request/cut-request.ts";
import { TrackedResponse } from "../../src/server/request/tracked-response.ts";
import { Forwarder } from "../../src/upstream/forward.ts";
import { IDENTITY_PRESETS } from "../../src/upstream/headers/identity-headers.ts";
import { Upstream } from "../../src/upstream/pool/upstreams.ts";
import { listening } from "../support/listening.ts";
import { permitFor } from "../support/permit.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange } from "../support/raw-client.ts";
import { until } from "../support/until.ts";
import { UPSTREAM_DEFAULTS } from "../support/upstream-defaults.ts";

/** A server that forwards to one backend, and how the request under way can be refused. */
interface Front {
  readonly server: Server;
  /** @returns whether the request was still under way. */
  readonly refuse: () => boolean;
}

/** @param answered called once the header section of a response has arrived. */
async function startFront(url: string, answered: () => void = () => undefined): Promise<Front> {
  const upstream = new Upstream(
    {
      ...UPSTREAM_DEFAULTS,
      name: "app",
      targets: [url],
      connections: 1,
      queue: { length: 1, timeout: 1_000 },
      timeouts: { connect: 5_000, response: 5_000, idle: 5_000 },
      websocket: { handshake: 5_000, idle: 5_000 },
    },
    systemClock,
  );
  onTestFinished(() => upstream.close());
  const forwarder = new Forwarder({
    upstreams: new Map([["app", upstream]]),
    identityHeaders: IDENTITY_PRESETS.sallyport,
    buffered: UNLIMITED,
    reading: UNMETERED,
    clock: systemClock,
    observer: {
      upstreamAnswered: answered,
      upstreamFailed: () => undefined,
      upstreamRetried: () => undefined,
      requestMirrored: () => undefined,
      webSocketOpened: () => undefined,
      webSocketClosed: () => undefined,
    },
  });
  let refuse = (): boolean => false;
  const forward = (request: IncomingMessage, response: ServerResponse): void => {
    if (!(response instanceof TrackedResponse)) throw new Error("not tracked");
    response.transfer = new Transfer();
    refuse = () => refuseUnderWay(response, "invalid_token", "test");
    const permit = permitFor(
      { bodyLength: request.method === "GET" ? 0 : -1 },
      { upstream: "app" },
    );
    void forwarder.forward(permit, request, response, response.transfer);
  };
  const server = createServer({ ServerResponse: TrackedResponse }, forward);
  return { server, refuse: () => refuse() };
}

/**
 * Refuses a request once the header section of this response has arrived. @returns what the client gets, and success.
 */
async function refusedWhileAnswering(answer: string): Promise<readonly [string, boolean]> {
  await using backend = await startRawBackend(() => ({ write: answer }));
  let refused = false;
  const { server, refuse } = await startFront(backend.url, () => {
    // Everything in the same segment is read before this.
    process.nextTick(() => (refused = refuse()));
  });
  await using front = await listening(server);
  const { raw } = await exchange({ port: front.port }, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  return [raw.slice(raw.indexOf("\r\n\r\n") + 4), refused];
}

it("sends a complete response, although none of it has been sent yet", async () => {
  const answer = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
  expect(await refusedWhileAnswering(answer)).toEqual(["ok\n", false]);
});

it("sends a complete response without a body", async () => {
  expect(await refusedWhileAnswering("HTTP/1.1 204 No Content\r\n\r\n")).toEqual(["", false]);
});

it("cuts off an incomplete response", async () => {
  const answer = "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nok\n";
  expect((await refusedWhileAnswering(answer))[1]).toBe(true);
});

it("ends the request to the backend at once, and a connection that takes no answer soon", async () => {
  await using backend = await startRawBackend(() => "hang");
  const { server, refuse } = await startFront(backend.url);
  const written: string[] = [];
  const client = new Duplex({
    read: () => undefined,
    // No write is ever complete.
    write: (chunk: Buffer) => void written.push(chunk.toString("latin1")),
  });
  server.emit("connection", client);
  client.push("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n");
  await until(() => backend.connections.some((each) => String(each.received()).includes("some")));
  expect(refuse()).toBe(true);
  await until(() => backend.connections.every(({ socket }) => socket.destroyed));
  expect(client.destroyed).toBe(false);
  expect(written.join("")).toMatch(/^HTTP\/1\.1 401 /);
  await until(() => client.destroyed, 3_000);
});
