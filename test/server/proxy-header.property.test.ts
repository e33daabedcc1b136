/**
 * Any bytes at the start of a connection are a PROXY header, an incomplete one or none, and only the header is
 * consumed.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  MAX_HEADER_BYTES,
  parseProxyHeader,
} from "../../src/server/listener/proxy-protocol/proxied-peer.ts";

const V2_START = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
const someBytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((each) => [...each]);
const port = fc.nat({ max: 65_535 });

/** Valid headers, each with the client that it names. */
const v1 = fc
  .record({ from: fc.ipV4(), to: fc.ipV4(), port, own: port })
  .map(({ from, to, port: source, own }) => ({
    bytes: Buffer.from(`PROXY TCP4 ${from} ${to} ${source} ${own}\r\n`),
    source: { address: from, port: source },
  }));
const v2 = fc
  .record({
    from: fc.tuple(...Array.from({ length: 4 }, () => fc.nat(255))),
    port,
    tlvs: someBytes(600),
  })
  .map(({ from, port: source, tlvs }) => {
    const length = 12 + tlvs.length;
    const ends = [...from, 10, 0, 0, 1, source >> 8, source & 255, 1, 187];
    const fixed = [...V2_START, 0x21, 0x11, length >> 8, length & 255];
    return {
      bytes: Buffer.from([...fixed, ...ends, ...tlvs]),
      source: { address: from.join("."), port: source },
    };
  });

it("a valid header is read completely, whatever follows, and only once it is complete", () => {
  fc.assert(
    fc.property(fc.oneof(v1, v2), someBytes(300), fc.nat(), ({ bytes, source }, rest, at) => {
      const all = Buffer.concat([bytes, Buffer.from(rest)]);
      expect(parseProxyHeader(all)).toEqual({ length: bytes.length, source });
      expect(parseProxyHeader(bytes.subarray(0, at % bytes.length))).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

it("a header with changed bytes is valid, incomplete or invalid, and never waits for more than the maximum", () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.oneof(v1, v2), changes, someBytes(200), ({ bytes }, changed, rest) => {
      const broken = Buffer.concat([bytes, Buffer.from(rest)]);
      for (const [at, value] of changed) broken[at % bytes.length] = value;
      const found = parseProxyHeader(broken);
      if (found === undefined || found === "invalid") return;
      expect(found.length).toBeLessThanOrEqual(broken.length);
      expect(found.length).toBeLessThanOrEqual(MAX_HEADER_BYTES);
      if (found.source !== undefined) expect(found.source.port).toBeLessThanOrEqual(65_535);
    }),
    { numRuns: 2_000 },
  );
});

it("any bytes lead to a decision once the length of the longest header has arrived", () => {
  const beginnings = fc.constantFrom(
    [],
    V2_START,
    [...Buffer.from("PROXY ")],
    [...Buffer.from("PROXY UNKNOWN")],
  );
  fc.assert(
    fc.property(beginnings, someBytes(64), (start, more) => {
      const filled = Buffer.alloc(MAX_HEADER_BYTES, 0x20);
      Buffer.from([...start, ...more]).copy(filled);
      expect(parseProxyHeader(filled)).toBeDefined();
    }),
    { numRuns: 1_000 },
  );
});
