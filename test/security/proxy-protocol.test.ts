/**
 * The PROXY protocol before TLS. It reports the client, so a sender can choose any address: only trusted proxies may
 * send it, and they must, since otherwise a client behind one could begin with its own header. It comes before TLS
 * and before any limit on clients, so an incomplete header must not occupy anything for long.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseProxyHeader } from "../../src/server/listener/proxy-protocol/proxied-peer.ts";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const PROXY = "127.0.0.2";
const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");

function v2(command: number, family: number, content: readonly number[]): Buffer {
  const fixed = Buffer.from([command, family, content.length >> 8, content.length & 255]);
  return Buffer.concat([SIGNATURE, fixed, Buffer.from(content)]);
}

const V4 = [203, 0, 113, 7, 10, 0, 0, 1, 0x12, 0x34, 0x01, 0xbb];
const V6 = [0x20, 0x01, 0x0d, 0xb8, ...Array.from({ length: 11 }, () => 0), 7];
const TLV = [0x03, 0, 4, 1, 2, 3, 4];
const V1 = "PROXY TCP4 203.0.113.7 10.0.0.1 4660 443\r\n";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await start();
});
afterAll(() => Promise.all([gate.close(), backend.close()]));

const start = (server: object = {}): Promise<Sallyport> =>
  startSallyport({
    target: backend.url,
    config: {
      server: {
        trustedProxies: [PROXY],
        proxyProtocol: "accept",
        timeouts: { header: "1s" },
        ...server,
      },
    },
  });

async function open(through: Sallyport, from: string): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port: through.port, localAddress: from });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

/** Returns the answer to a request after these bytes; undefined if the connection was closed without one. */
async function told(
  parts: readonly (string | Buffer)[],
  { through = gate, from = PROXY, fields = "" } = {},
): Promise<string | undefined> {
  const socket = await open(through, from);
  const closed = once(socket, "close");
  for (const part of parts) {
    socket.write(part);
    if (parts.length > 1) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const secured = connectTls({ socket, ca: through.ca, servername: "localhost" });
  let answer = "";
  secured.on("data", (chunk: Buffer) => (answer += chunk.toString()));
  secured.on("error", () => socket.destroy());
  const request = `GET /x HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${through.token}\r\n`;
  secured.write(`${request}${fields}Connection: close\r\n\r\n`);
  await closed;
  return answer === "" ? undefined : answer;
}

const forwardedFor = (answer: string | undefined): string | undefined =>
  /"X-Forwarded-For","([^"]*)"/.exec(answer ?? "")?.[1];

describe("a header from a trusted proxy", () => {
  it.each([
    ["of version 1", [V1], "203.0.113.7"],
    ["in pieces", [V1.slice(0, 3), V1.slice(3, 20), V1.slice(20)], "203.0.113.7"],
    ["of version 1 for IPv6", ["PROXY TCP6 2001:DB8::7 ::1 1 2\r\n"], "2001:db8::7"],
    ["of version 2", [v2(0x21, 0x11, V4)], "203.0.113.7"],
    ["with TLVs", [v2(0x21, 0x11, [...V4, ...TLV])], "203.0.113.7"],
    ["in single bytes", [...v2(0x21, 0x11, V4)].map((byte) => Buffer.from([byte])), "203.0.113.7"],
    ["of version 2 for IPv6", [v2(0x21, 0x21, [...V6, ...V6, 1, 2, 3, 4])], "2001:db8::7"],
    ["of a proxy that does not know", ["PROXY UNKNOWN\r\n"], PROXY],
    ["of a proxy's own check", [v2(0x20, 0x00, [])], PROXY],
  ])("%s names the client", async (_what, parts, client) => {
    expect(forwardedFor(await told(parts))).toBe(client);
  });

  it("names the client in the log, and nothing after it is trusted", async () => {
    const answer = await told([V1], { fields: "X-Forwarded-For: 198.51.100.66\r\n" });
    expect(forwardedFor(answer)).toBe("203.0.113.7");
    await until(() => gate.log().some(({ client }) => client === "203.0.113.7"));
    const own = await told(["PROXY UNKNOWN\r\n"], { fields: "X-Forwarded-For: 198.51.100.66\r\n" });
    expect(forwardedFor(own)).toBe(PROXY);
  });

  it("counts the connections of the client, not those of the proxy, over all threads", async () => {
    await using few = await start({ workers: 2, limits: { connectionsPerAddress: 2 } });
    const held: Socket[] = [];
    for (let i = 0; i < 2; i += 1) {
      const socket = await open(few, PROXY);
      socket.write(V1);
      held.push(connectTls({ socket, ca: few.ca, servername: "localhost" }));
      await once(held[i] ?? socket, "secureConnect");
    }
    expect(await told([V1], { through: few })).toBeUndefined();
    const other = V1.replace("203.0.113.7", "203.0.113.8");
    expect(forwardedFor(await told([other], { through: few }))).toBe("203.0.113.8");
    for (const socket of held) socket.destroy();
  });
});

/**
 * Envoy skipped too many or too few bytes of a TLV, so that the rest became the beginning of the stream
 * (CVE-2026-47692).
 */
describe("TLVs never move the end of the header", () => {
  const tlv = (declared: number, content: number): number[] => [
    ...[0x04, declared >> 8, declared & 255],
    ...Array.from({ length: content }, () => 0x16),
  ];

  it.each([
    ["that is empty", tlv(0, 0)],
    ["that ends with the header", tlv(5, 5)],
    ["that claims one byte more", tlv(6, 5)],
    ["that claims one byte less", tlv(4, 5)],
    ["that claims 64 KiB", tlv(0xffff, 5)],
    ["without its length", [0x04]],
    ["with half its length", [0x04, 0]],
    ["that fills the header", tlv(4_081, 4_081)],
    ["that fills the header and claims more", tlv(0xffff, 4_081)],
    ["within another, of TLS", [0x20, 0, 8, 1, 0, 0, 0, 0, 0x21, 0xff, 0xff]],
  ])("one %s", async (_what, more) => {
    expect(forwardedFor(await told([v2(0x21, 0x11, [...V4, ...more])]))).toBe("203.0.113.7");
    const own = v2(0x20, 0x11, [...V4, ...more]);
    expect(forwardedFor(await told([own]))).toBe(PROXY);
    expect(forwardedFor(await told([v2(0x20, 0x00, more)]))).toBe(PROXY);
  });

  it("a header that is too long is none, and one that is cut off takes the bytes that follow", async () => {
    expect(await told([v2(0x21, 0x11, [...V4, ...tlv(4_082, 4_082)])])).toBeUndefined();
    const whole = v2(0x21, 0x11, [...V4, ...tlv(5, 5)]);
    expect(await told([whole.subarray(0, -1)])).toBeUndefined();
    expect(await told([Buffer.concat([whole, Buffer.of(0x16)])])).toBeUndefined();
  });
});

describe("closed without an answer", () => {
  it.each([
    ["no header", []],
    ["another word", ["PROXX TCP4 1.2.3.4 1.2.3.4 1 2\r\n"]],
    ["an invalid address", ["PROXY TCP4 203.0.113.999 10.0.0.1 1 2\r\n"]],
    ["an address of the other family", ["PROXY TCP4 ::1 10.0.0.1 1 2\r\n"]],
    ["an invalid port", ["PROXY TCP4 203.0.113.7 10.0.0.1 65536 2\r\n"]],
    ["a line without an end", [`PROXY UNKNOWN ${"x".repeat(200)}`]],
    ["a bare line feed", ["PROXY TCP4 203.0.113.7 10.0.0.1 1 2\n"]],
    ["another version", [v2(0x31, 0x11, V4)]],
    ["an unknown command", [v2(0x22, 0x11, V4)]],
    ["datagrams", [v2(0x21, 0x12, V4)]],
    ["too few bytes for its addresses", [v2(0x21, 0x21, V4)]],
    ["an excessive length", [Buffer.concat([SIGNATURE, Buffer.from([0x21, 0x11, 0xff, 0xff])])]],
    ["a second header", [V1, V1]],
  ])("%s", async (_what, parts) => {
    expect(await told(parts)).toBeUndefined();
  });

  it("half a header, after the time for one", async () => {
    const began = performance.now();
    const socket = await open(gate, PROXY);
    socket.write(V1.slice(0, 12));
    await once(socket, "close");
    expect(performance.now() - began).toBeGreaterThan(700);
    await until(async () => {
      const { body } = await ask({ port: gate.adminPort }, "/metrics");
      return /sallyport_requests_rejected_total\{reason="proxy_protocol"\} [1-9]/.test(body);
    });
  });

  it("a header from anyone else, who is served without one", async () => {
    expect(await told([V1], { from: "127.0.0.3" })).toBeUndefined();
    expect(forwardedFor(await told([], { from: "127.0.0.3" }))).toBe("127.0.0.3");
  });
});

it("any bytes, in any pieces, are one header, none, or the beginning of one", () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.uint8Array({ maxLength: 80 }).map((rest) => Buffer.concat([SIGNATURE, rest])),
    fc.uint8Array({ maxLength: 80 }).map((rest) => Buffer.concat([Buffer.from("PROXY "), rest])),
    fc.constantFrom(Buffer.from(V1), v2(0x21, 0x11, [...V4, ...TLV]), v2(0x21, 0x21, V6)),
  );
  fc.assert(
    fc.property(bytes, fc.nat(200), (arrived, at) => {
      const all = Buffer.from(arrived);
      const whole = parseProxyHeader(all);
      const part = parseProxyHeader(all.subarray(0, at));
      // A decision about a beginning is final, and not made too early.
      if (part !== undefined) expect(part).toEqual(whole);
      if (typeof whole === "object") expect(whole.length).toBeLessThanOrEqual(all.length);
    }),
    { numRuns: 20_000 },
  );
});
