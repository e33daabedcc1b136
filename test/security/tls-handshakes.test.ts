/**
 * Trouble before the first request. A connection whose TLS handshake never ends has no request yet, so no HTTP time
 * limit applies: it occupies a descriptor and buffers for as long as it likes, byte by byte (slowloris below HTTP).
 * Others announce a message of 16 MB, speak plain HTTP, or send a server name or a list of protocols that makes a
 * callback of the server throw (CVE-2026-21637 in Node; fixed in all versions that Sallyport supports, so there is no
 * naive counterpart here).
 */
import { once } from "node:events";
import { createServer as createTlsServer } from "node:https";
import { createServer, type Socket } from "node:net";
import { connect } from "node:tls";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startCrowd } from "../support/crowd.ts";
import { listening } from "../support/listening.ts";
import { listeningPort } from "../support/listening-port.ts";
import { useSallyport } from "../support/pair.ts";
import { openSocket, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";
import { tlsExchange } from "../support/tls-client.ts";
import { until } from "../support/until.ts";

const GET = request(["GET /public/x HTTP/1.1", "Host: localhost", "Connection: close"]);
const NAME = "n".repeat(24);
const hello = await clientHello();

/** The first message of a client that requests NAME. */
async function clientHello(): Promise<Buffer> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect({ host: "127.0.0.1", port: listeningPort(server), servername: NAME });
  client.on("error", () => undefined);
  const [socket] = await once(server, "connection");
  const [bytes] = await once(socket, "data");
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

function named(name: string): Buffer {
  const bytes = Buffer.from(hello);
  bytes.write(name.padEnd(NAME.length, "n").slice(0, NAME.length), bytes.indexOf(NAME), "latin1");
  return bytes;
}

/** A handshake record that belongs to a message of `length` bytes. */
function announcing(length: number): Buffer {
  const record = Buffer.alloc(5 + 16_384);
  record.set([0x16, 3, 1, 0x40, 0, 1]);
  record.writeUIntBE(length, 6, 3);
  return record;
}

const withLength = (bytes: Buffer, at: number, length: number): Buffer => {
  const changed = Buffer.from(bytes);
  changed.writeUInt16BE(length, at);
  return changed;
};
const nameAt = hello.indexOf(NAME);

const NONSENSE: readonly (readonly [string, Buffer])[] = [
  ["the preface of HTTP/2", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")],
  ["a line of a PROXY protocol", Buffer.from("PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n")],
  ["noise", Buffer.from("ff".repeat(300), "hex")],
  ["a message of 16 MB", Buffer.concat([announcing(0xff_ff_ff), announcing(0xff_ff_ff)])],
  ["an alert", Buffer.from("15030100020228", "hex")],
  ["data before the handshake", Buffer.from("170303000568656c6c6f", "hex")],
  ["a name that is longer than its field", withLength(hello, nameAt - 2, 0xff_ff)],
  ["a name without a letter", withLength(hello, nameAt - 2, 0)],
];

/** Writes these pieces, one every 50 ms, and returns the milliseconds until the other side has closed. */
async function timeUntilClosed(port: number, pieces: readonly Buffer[]): Promise<number> {
  const socket = await openSocket({ port });
  const started = performance.now();
  const closed = once(socket, "close");
  socket.on("error", () => undefined).resume();
  for (const piece of pieces) {
    if (socket.destroyed) break;
    socket.write(piece);
    await Promise.race([delay(50), closed]);
  }
  await closed;
  return performance.now() - started;
}

describe("Sallyport", () => {
  const standing = useSallyport(undefined, {
    config: { server: { timeouts: { header: "1s" } } },
  });
  const counted = async (): Promise<number> =>
    (await scrape(standing().gate)).value(
      'sallyport_requests_rejected_total{reason="tls_handshake"}',
    ) ?? Number.NaN;

  it("does not wait for clients that never finish, as Node does", { timeout: 20_000 }, async () => {
    const { gate } = standing();
    await using naive = await listening(createTlsServer((await testCertificates()).server));
    const begins = (socket: Socket, index: number): void =>
      void (index > 0 && socket.write(hello.subarray(0, 100 * index)));
    using waiting = startCrowd(naive, 2, { tls: false, each: begins });
    await until(() => waiting.open() === 2);
    const before = await counted();
    const lasted = await Promise.all([
      // Silent; in the middle of the first message; after it; byte by byte.
      timeUntilClosed(gate.port, [Buffer.alloc(0)]),
      timeUntilClosed(gate.port, [hello.subarray(0, 100)]),
      timeUntilClosed(gate.port, [hello]),
      timeUntilClosed(
        gate.port,
        Array.from(hello, (byte) => Buffer.of(byte)),
      ),
      // SSL 2 has another format: in TLS the record is incomplete.
      timeUntilClosed(gate.port, [Buffer.from("802e0100020015000000100700c0", "hex")]),
    ]);
    // The last byte would be sent after more than ten seconds.
    expect(Math.max(...lasted)).toBeLessThan(8_000);
    expect(waiting.closed()).toBe(0);
    await until(async () => (await counted()) === before + lasted.length);
    // No request, so no access line.
    expect(gate.log().filter(({ route }) => route === "none")).toEqual([]);
  });

  it.each(NONSENSE)("ends the connection after %s", async (_name, bytes) => {
    const { gate, backend } = standing();
    const before = await counted();
    const socket = await openSocket({ port: gate.port });
    const closed = once(socket, "close");
    const received: Buffer[] = [];
    socket.on("error", () => undefined).on("data", (chunk: Buffer) => received.push(chunk));
    socket.write(bytes);
    await closed;
    // At most an alert: no plain text, and no echo of what was sent.
    const back = Buffer.concat(received);
    expect(back.length <= 7 && (back.length === 0 || back[0] === 0x15)).toBe(true);
    await until(async () => (await counted()) === before + 1);
    expect(backend.seen()).toEqual([]);
    expect(gate.log().filter(({ route }) => route === "none")).toEqual([]);
  });

  it.each([
    ...["LOCALHOST", "localhost.", "..", "*", "a".repeat(255), "../../etc/passwd", "__proto__"],
    ...["constructor", "xn--", "127.0.0.1.example", " "],
  ])("has one certificate, whatever name is asked for: %j", async (servername) => {
    const { gate } = standing();
    const checkServerIdentity = (): undefined => undefined;
    const answer = await tlsExchange(gate, GET, { servername, checkServerIdentity });
    expect(answer.raw).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each(["a\0b", "\xFF\xFE", "a\r\nHost: b", "\0".repeat(24)])(
    "survives the name %j",
    async (name) => {
      const { gate } = standing();
      const socket = await openSocket({ port: gate.port });
      const heard = once(socket, "data");
      socket.on("error", () => undefined).write(named(name));
      // The server's hello, or an alert.
      const [first] = await heard;
      expect([0x15, 0x16]).toContain(first[0]);
      socket.destroy();
      expect((await ask(gate, "/public/x")).status).toBe(200);
    },
  );

  it.each([
    [["h2"], undefined],
    [["http/1.0"], undefined],
    [["acme-tls/1"], undefined],
    [["h2", "http/1.1"], "http/1.1"],
    [["http/1.1"], "http/1.1"],
    [[], false],
  ])("of the protocols %j agrees on %j", async (ALPNProtocols, agreed) => {
    const answer = await tlsExchange(standing().gate, GET, { ALPNProtocols });
    expect(answer.protocol === undefined ? undefined : answer.alpn).toBe(agreed);
    expect(answer.raw === "").toBe(agreed === undefined);
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)("resumes a session of %s", async (version) => {
    const { gate } = standing();
    const versions = { minVersion: version, maxVersion: version } as const;
    const { session } = await tlsExchange(gate, GET, versions);
    const again = await tlsExchange(gate, GET, { ...versions, ...(session && { session }) });
    expect([again.raw.slice(0, 12), again.resumed]).toEqual(["HTTP/1.1 200", true]);
  });

  it("has logged nothing unusual", async () => {
    const { gate } = standing();
    expect(gate.log().filter(({ level }) => level === "error")).toEqual([]);
    expect([gate.exited(), gate.stderr()]).toEqual([false, ""]);
    expect((await ask(gate, "/orders", { token: gate.token })).status).toBe(200);
  });
});
