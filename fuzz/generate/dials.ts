import fc from "fast-check";
import type { Credentials } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { type Dial, PLAIN } from "../wire/dial.ts";
import { headers } from "./headers.ts";
import { http2 } from "./http2.ts";
import { splices } from "./message.ts";

/** Generates a case of either version of HTTP on a connection that begins with this dial. */
function dialling(credentials: Credentials, dial: fc.Arbitrary<Partial<Dial>>): fc.Arbitrary<Case> {
  return fc
    .tuple(fc.oneof(headers(credentials), http2(credentials)), dial)
    .map(([play, begins]) => ({ ...play, dial: { ...(play.dial ?? PLAIN), ...begins } }));
}

/** Generates connections that negotiate one protocol in the TLS handshake and may speak another. */
export function alpn(credentials: Credentials): fc.Arbitrary<Case> {
  const names = ["h2", "http/1.1", "http/1.0", "h2c", "H2", "spdy/3", "x"];
  const offers = fc.oneof(
    fc.constantFrom(["h2"], ["http/1.1"], ["h2", "http/1.1"], []),
    fc.shuffledSubarray(names),
  );
  return dialling(
    credentials,
    offers.map((each) => ({ secure: true, offers: each })),
  );
}

const SIGNATURE = "\r\n\r\n\0\r\nQUIT\n";
/** Unbiased, since each case needs a unique address, in 128.0.0.0/2, which nothing else uses. */
const octets = fc
  .noBias(fc.tuple(fc.nat(63), fc.nat(255), fc.nat(255), fc.nat(255)))
  .map(([first, ...others]) => [128 + first, ...others]);

/** Headers of version 1, mostly well-formed. */
const v1 = fc
  .record({
    octets,
    six: fc.boolean(),
    odd: fc.option(
      fc.constantFrom(
        ...["PROXY UNKNOWN\r\n", "PROXY UNKNOWN 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY\r\n", "PROXY "],
        ...[
          "PROXY UNKNOWN \0\u00ff\r\n",
          "PROXY TCP4 127.0.0.1 127.0.0.1 1 65536\r\n",
          "PROXY TCP4",
        ],
        ...["PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n", "proxy TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "\r\n"],
        ...["PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n", "PROXY TCP4 01.2.3.4 1.2.3.4 1 2\r\n"],
        ...["PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n"],
        ...[`PROXY UNKNOWN ${"x".repeat(91)}\r\n`, `PROXY UNKNOWN ${"x".repeat(92)}\r\n`],
      ),
      { freq: 5 },
    ),
  })
  .map(({ octets, six, odd }) => {
    if (odd !== null) return odd;
    const address = octets.join(".");
    if (!six) return `PROXY TCP4 ${address} 10.0.0.1 4660 443\r\n`;
    const hex = octets.map((each) => each.toString(16)).join(":");
    return `PROXY TCP6 2001:DB8::${hex} ::1 4660 443\r\n`;
  });

/** Headers of version 2: a command, a family, and a length that may differ from the content. */
const v2 = fc
  .record({
    octets,
    command: fc.oneof(
      { arbitrary: fc.constant(0x21), weight: 6 },
      fc.constantFrom(0x20, 0x22, 0x11),
    ),
    family: fc.oneof(
      { arbitrary: fc.constantFrom(0x11, 0x21), weight: 6 },
      fc.constantFrom(0x00, 0x12, 0x22, 0x31, 0x41),
    ),
    tlvs: fc.oneof(fc.constant(0), fc.constantFrom(3, 7, 300, 4060, 4084, 4085, 60_000)),
    more: fc.oneof({ arbitrary: fc.constant(0), weight: 8 }, fc.constantFrom(-40, -8, -1, 1, 20)),
  })
  .map(({ octets, command, family, tlvs, more }) => {
    const four = String.fromCharCode(...octets);
    const address = family === 0x21 ? `\u0020\u0001\u000d\u00b8${"\0".repeat(8)}${four}` : four;
    const own = "\0".repeat(address.length - 1);
    const content = `${address}${own}\u0001\u0012\u0034\u0001\u00bb${"\u0004".repeat(tlvs)}`;
    const length = Math.max(0, content.length + more);
    return SIGNATURE + String.fromCharCode(command, family, length >> 8, length & 255) + content;
  });

/** Generates connections with or without a header of the PROXY protocol, from peers that may send one and from others. */
export function proxied(credentials: Credentials): fc.Arbitrary<Case> {
  const well = fc.oneof({ arbitrary: fc.oneof(v1, v2), weight: 8 }, fc.constant(""));
  const header = fc.oneof(
    { arbitrary: well, weight: 4 },
    fc.tuple(well, splices).map(([text, splice]) => splice(text)),
    fc.tuple(well, well).map((both) => both.join("")),
  );
  const trusted = fc.nat(4).map((turn) => turn > 0);
  const dial = fc.record({ secure: fc.nat(2).map((turn) => turn === 0), trusted, header });
  return dialling(
    credentials,
    dial.map((begins) => begins),
  ).map((play) => {
    const { secure, offers } = play.dial ?? PLAIN;
    const fitting = secure && offers.length === 0 && play.frames === true ? ["h2"] : offers;
    return { ...play, dial: { ...(play.dial ?? PLAIN), offers: secure ? fitting : [] } };
  });
}
