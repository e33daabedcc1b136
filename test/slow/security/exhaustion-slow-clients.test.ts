/**
 * Slow clients. A header section that arrives field by field and never ends (slowloris), a body that trickles (RUDY), a
 * response that is not read: none of these is idle, so no idle timeout ends it, and each holds a connection, some of
 * them a connection to the backend as well. A single machine can hold thousands.
 *
 * Sallyport limits the time for a header section and for a complete request from their start, however many bytes
 * trickle in. Each such client gets 408, a closed connection, and a log line; other clients are not affected.
 */
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { fieldsOf } from "../../support/ask.ts";
import { dribble, startCrowd, type Crowd } from "../../support/crowd.ts";
import { readMessages } from "../../support/http-reader.ts";
import { logLine } from "../../support/log-line.ts";
import { useNaiveProxy, useSallyport } from "../../support/pair.ts";
import { resourcesOf, untilDescriptorsAreBack } from "../../support/proxy-resources.ts";
import { request, type Peer } from "../../support/raw-client.ts";
import { scrape } from "../../support/scrape.ts";
import { slowdownUnder } from "../../support/steadiness.ts";
import { until } from "../../support/until.ts";

const EACH = 8;

/** Clients that send a few bytes now and then, forever. */
const SLOW: Readonly<Record<string, (socket: Socket) => void>> = {
  "a head": (socket) => {
    socket.write("GET /public/x HTTP/1.1\r\nHost: localhost\r\n");
    dribble(socket, "x-a: b\r\n", 100);
  },
  "a request line": (socket) => {
    socket.write("GET /public/");
    dribble(socket, "a", 100);
  },
  "a body": (socket) => {
    const head = ["POST /public/x HTTP/1.1", "Host: localhost", "Content-Length: 100000"];
    socket.write(request(head));
    dribble(socket, "a", 100);
  },
  "a small body": (socket) => {
    socket.write(request(["POST /public/x HTTP/1.1", "Host: localhost", "Content-Length: 1000"]));
    dribble(socket, "a", 100);
  },
  chunks: (socket) => {
    const head = ["POST /public/x HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked"];
    socket.write(request(head));
    dribble(socket, "1\r\na\r\n", 100);
  },
  "a chunk extension": (socket) => {
    const head = ["POST /public/x HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked"];
    socket.write(`${request(head)}1;`);
    dribble(socket, "a", 100);
  },
  trailers: (socket) => {
    const head = ["POST /public/x HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked"];
    socket.write(`${request(head)}0\r\n`);
    dribble(socket, "x-a: b\r\n", 100);
  },
  "a login": (socket) => {
    const head = ["POST /api/authenticate HTTP/1.1", "Host: localhost", "Content-Length: 1000"];
    socket.write(request([...head, "Content-Type: application/json"]));
    dribble(socket, " ", 100);
  },
  "a body that was refused": (socket) => {
    socket.write(request(["POST /orders HTTP/1.1", "Host: localhost", "Content-Length: 100000"]));
    dribble(socket, "a", 100);
  },
};
const NAMES = Object.keys(SLOW);

describe("Sallyport", () => {
  const standing = useSallyport(undefined, {
    config: {
      server: { timeouts: { header: "1s", request: "2s" } },
      upstreams: { app: { timeouts: { connect: "5s", response: "5s", idle: "5s" } } },
    },
  });

  /** Starts clients of all kinds, and waits until the last is disconnected. */
  async function outlive(): Promise<Crowd> {
    const { gate } = standing();
    using crowd = startCrowd(gate, NAMES.length * EACH, {
      each: (socket, index) => SLOW[NAMES[index % NAMES.length] ?? ""]?.(socket),
    });
    await until(() => crowd.closed() === NAMES.length * EACH, 12_000);
    return crowd;
  }

  it("ends each with 408 or its refusal, and releases all resources", async () => {
    const { gate } = standing();
    const resources = await resourcesOf(gate);
    const base = await resources.descriptors();
    const memory = await resources.residentBytes();
    let received: readonly string[] = [];
    const slower = await slowdownUnder(gate, "/public/quick", async () => {
      received = (await outlive()).received();
    });
    expect(slower).toBeLessThanOrEqual(3);
    for (const [index, name] of NAMES.entries()) {
      const bytes = Buffer.from(received[index] ?? "", "latin1");
      const [first, ...more] = readMessages("response", bytes, true).messages;
      const status = name === "a body that was refused" ? 401 : 408;
      expect(first?.startLine, name).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(more, name).toEqual([]);
      const { id } = fieldsOf({ body: first?.body.toString() ?? "" });
      expect(await logLine(gate, { id }), name).toMatchObject({ status });
    }
    await untilDescriptorsAreBack(resources, base);
    await until(async () => {
      const { value } = await scrape(gate);
      return (
        value('sallyport_upstream_requests_in_flight{upstream="app"}') === 0 &&
        value("sallyport_http_requests_in_flight") === 0
      );
    });
    expect((await resources.residentBytes()) - memory).toBeLessThan(96 * 1024 * 1024);
  }, 60_000);
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("keeps them connected", async () => {
    const { gate } = standing();
    const names = ["a head", "a body", "chunks"];
    const closed = await Promise.all(names.map((name) => closesWithin(gate, name, 3_500)));
    expect(closed).toEqual([false, false, false]);
  });
});

async function closesWithin(peer: Peer, name: string, timeoutMs: number): Promise<boolean> {
  using crowd = startCrowd(peer, 1, { each: (socket) => SLOW[name]?.(socket) });
  return await until(() => crowd.closed() === 1, timeoutMs).then(
    () => true,
    () => false,
  );
}
