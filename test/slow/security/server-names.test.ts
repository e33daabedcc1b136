/**
 * The name of the server in a handshake (SNI) is the client's to choose: none, another than in `Host`, in odd case, as an address, in
 * bytes that are no name, or cut into small pieces. Where that name chooses the policy of the connection, it chooses
 * whether a client certificate is asked for (CVE-2026-53622, CVE-2026-48491 Traefik, CVE-2026-50149 Contour), and a name that the server fails to read
 * gets the policy of nobody (CVE-2026-32305 Traefik). A session of one name that is resumed under another brings the certificate of
 * its client along (CVE-2025-23419 nginx). With several certificates, the name chooses the certificate of the server, and nothing else.
 */
import { randomBytes, X509Certificate } from "node:crypto";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { testCertificates } from "../../support/certificates.ts";
import { clientAuthority } from "../../support/client-certificates.ts";
import { valuesOf } from "../../support/http-reader.ts";
import { useSallyport } from "../../support/pair.ts";
import { request } from "../../support/raw-client.ts";
import { scrape } from "../../support/scrape.ts";
import { tlsExchange, type TlsExchangeOptions } from "../../support/tls-client.ts";
import { until } from "../../support/until.ts";

vi.setConfig({ testTimeout: 60_000 });
const { server: first } = await testCertificates();
const authority = await clientAuthority();
const impostor = await clientAuthority();
const alice = await authority.certificate();
const servers = await clientAuthority("Servers");
const shop = await servers.certificate({
  usage: "serverAuth",
  altNames: ["DNS:shop.example", "DNS:*.wild.example", "IP:127.0.0.1"],
});

const SERVED = [
  ["first", new X509Certificate(first.cert).raw],
  ["shop", new X509Certificate(shop.cert).raw],
] as const;

const CERTIFICATES = {
  none: {},
  alice,
  "another authority's": await impostor.certificate(),
  "a former one": await authority.certificate({ days: [-30, -1] }),
};
const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;
/** An empty name is not sent. */
const NAMES = ["", "localhost", "shop.example", "SHOP.Example.", "a.wild.example", "other.example"];
const HOSTS = ["localhost", "shop.example", "a.wild.example:443", "other.example"];

const certificates = [
  { certFile: "tls.crt", keyFile: "tls.key" },
  { certFile: "shop.crt", keyFile: "shop.key" },
];
function options(more: Readonly<Record<string, unknown>> = {}, server: object = {}) {
  const tls = { certFile: undefined, keyFile: undefined, certificates, ...more };
  return {
    withoutToken: true,
    config: {
      server: { tls, http2: true, timeouts: { header: "2s" }, ...server },
      routes: [
        { name: "open", path: "/open/", auth: "none", upstream: "app" },
        { name: "certified", path: "/certified/", auth: "certificate", upstream: "app" },
        { name: "shop", hosts: ["shop.example"], path: "/", auth: "none", upstream: "app" },
        { name: "rest", path: "/", upstream: "app" },
      ].filter(({ auth }) => auth !== "certificate" || "clientCertificates" in more),
    },
    files: {
      "shop.crt": shop.cert,
      "shop.key": shop.key,
      "clients.crt": authority.cert,
      "ticket.key": randomBytes(48).toString("base64"),
    },
  };
}
const get = (host: string, path: string): string =>
  request([`GET ${path} HTTP/1.1`, `Host: ${host}`, "Connection: close"]);
const trusting = (servername: string): TlsExchangeOptions => ({
  servername,
  rejectUnauthorized: false,
  timeoutMs: 20_000,
});

describe.each(["optional", "required"] as const)("with %s certificates of clients", (mode) => {
  const standing = useSallyport(
    undefined,
    options({ clientCertificates: { mode, caFile: "clients.crt" } }, { workers: 2 }),
  );

  it.each(VERSIONS)(
    "no name changes a decision, or whose certificate counts: %s",
    async (version) => {
      const { gate, backend } = standing();
      const versions = { minVersion: version, maxVersion: version };
      const decisions = async (servername: string): Promise<string[]> => {
        const all: string[] = [];
        for (const [whose, certificate] of Object.entries(CERTIFICATES)) {
          for (const host of HOSTS) {
            for (const path of ["/open/x", "/certified/x", "/x"]) {
              backend.forget();
              const asked = { ...trusting(servername), ...versions, ...certificate };
              const { raw, error } = await tlsExchange(gate, get(host, path), asked);
              expect(error).not.toBe("timeout");
              const subjects = backend
                .requests()
                .map(({ headers }) => valuesOf(headers, "x-auth-client-subject"));
              all.push(`${whose} ${host} ${path}: ${raw.slice(9, 12)} ${subjects.join()}`);
            }
          }
        }
        return all;
      };
      const expected = await decisions("");
      const open = mode === "optional" ? "200" : "";
      expect(expected).toContain(`none localhost /open/x: ${open} `);
      expect(expected).toContain(`none localhost /certified/x: ${open && "401"} `);
      expect(expected).toContain("alice localhost /certified/x: 200 CN=alice,OU=sales,O=Example");
      expect(expected).toContain(`none shop.example /x: ${open} `);
      expect(expected).toContain("alice localhost /x: 401 ");
      expect(expected).toContain("another authority's localhost /open/x:  ");
      expect(expected).toContain("a former one localhost /open/x:  ");
      for (const name of NAMES) expect([name, await decisions(name)]).toEqual([name, expected]);
    },
  );

  it.each(VERSIONS)("no session is resumed under any name: %s", async (version) => {
    const { gate } = standing();
    const versions = { minVersion: version, maxVersion: version };
    for (const from of NAMES) {
      const before = await tlsExchange(gate, get("a", "/x"), {
        ...trusting(from),
        ...versions,
        ...alice,
      });
      for (const to of NAMES) {
        const again = {
          ...trusting(to),
          ...versions,
          ...(before.session && { session: before.session }),
        };
        const { raw, resumed } = await tlsExchange(gate, get("a", "/certified/x"), again);
        expect([resumed, raw.slice(9, 12)]).toEqual([false, mode === "optional" ? "401" : ""]);
      }
    }
  });
});

describe("without certificates of clients", () => {
  const standing = useSallyport(
    undefined,
    options({ ticketKeyFile: "ticket.key", minVersion: "TLSv1.2" }),
  );

  it.each(VERSIONS)(
    "a session resumed under another name gets the same decisions: %s",
    async (version) => {
      const { gate } = standing();
      const versions = { minVersion: version, maxVersion: version };
      for (const from of NAMES) {
        const { session } = await tlsExchange(gate, get("a", "/x"), {
          ...trusting(from),
          ...versions,
        });
        expect(session).toBeDefined();
        for (const to of NAMES) {
          for (const [host, status] of [
            ["a", "401"],
            ["shop.example", "200"],
          ] as const) {
            const again = { ...trusting(to), ...versions, ...(session && { session }) };
            const { raw } = await tlsExchange(gate, get(host, "/x"), again);
            expect([from, to, host, raw.slice(9, 12)]).toEqual([from, to, host, status]);
          }
        }
      }
    },
  );

  const LONG = Buffer.from(`${"a".repeat(63)}.`.repeat(3) + "b".repeat(63));
  /** What a TLS 1.2 client gets for a name in clear text, or that the handshake is refused. */
  const NAMED: readonly (readonly [string, Buffer | undefined, string])[] = [
    ["no name", undefined, "first"],
    ["a name", Buffer.from("shop.example"), "shop"],
    ["its address", Buffer.from("127.0.0.1"), "first"],
    ["an IPv6 address", Buffer.from("[::1]"), "first"],
    ["a name of 255 bytes", LONG.subarray(0, 255), "first"],
    ["a name of 256 bytes", Buffer.alloc(256, "a"), "refused"],
    ["a name of 16,000 bytes", Buffer.alloc(16_000, "a."), "refused"],
    ["dots", Buffer.alloc(255, "."), "first"],
    ["a NUL within the name", Buffer.from("shop.example\0.evil"), "refused"],
    ["a NUL at its end", Buffer.from("shop.example\0"), "refused"],
    ["no UTF-8", Buffer.from("fffe80c0", "hex"), "first"],
    ["a letter that is lower-cased to another", Buffer.from("\u{212A}shop.example"), "first"],
    ["line breaks", Buffer.from("shop.example\r\nHost: a"), "first"],
    ["an empty name", Buffer.alloc(0), "first"],
    ["a wildcard", Buffer.from("*.wild.example"), "shop"],
    ["a member of every object", Buffer.from("__proto__"), "first"],
    ["characters of expressions", Buffer.from("(a+)+$[.example"), "first"],
  ];

  it.each(NAMED)(
    "%s in a handshake chooses a certificate at most",
    async (_what, name, expected) => {
      const { gate } = standing();
      const hello = clientHello(name);
      expect(await certificateFor(gate.port, [record(hello)])).toEqual(expected);
      // Each piece in a record and a packet of its own.
      if (hello.length > 1_000) return;
      const pieces = Array.from({ length: Math.ceil(hello.length / 7) }, (_, index) =>
        record(hello.subarray(index * 7, index * 7 + 7)),
      );
      expect(await certificateFor(gate.port, pieces)).toEqual(expected);
    },
  );

  it("a second name, or one of an unknown kind, chooses nothing", async () => {
    const { gate } = standing();
    const shopName = serverName(Buffer.from("shop.example"));
    const two = clientHello(Buffer.concat([shopName, serverName(Buffer.from("localhost"))]), true);
    const unknown = clientHello(serverName(Buffer.from("shop.example"), 7), true);
    for (const hello of [two, unknown]) {
      expect(await certificateFor(gate.port, [record(hello)])).toBe("refused");
    }
  });

  it("a handshake that stops within its name ends in time, and others go on", async () => {
    const { gate } = standing();
    const bytes = record(clientHello(Buffer.from("shop.example")));
    const at = bytes.indexOf("example");
    const slow = Array.from({ length: 50 }, () =>
      certificateFor(gate.port, [bytes.subarray(0, at)]),
    );
    expect(await certificateFor(gate.port, [bytes])).toEqual("shop");
    expect(new Set(await Promise.all(slow))).toEqual(new Set(["refused"]));
    const refused = 'sallyport_requests_rejected_total{reason="tls_handshake"}';
    await until(async () => ((await scrape(gate)).value(refused) ?? 0) >= slow.length);
  });
});

/** A handshake message in one record. */
function record(content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x16, 3, 1]), sized(content, 2)]);
}

/** Some bytes behind their length. */
function sized(content: Buffer, bytes: 1 | 2 | 3): Buffer {
  const length = Buffer.alloc(bytes);
  length.writeUIntBE(content.length, 0, bytes);
  return Buffer.concat([length, content]);
}

/** An entry of the list of names (RFC 6066 §3). */
function serverName(name: Buffer, kind = 0): Buffer {
  return Buffer.concat([Buffer.from([kind]), sized(name, 2)]);
}

/** The first message of a TLS 1.2 client. @param name bytes of a name, or with `isList` a whole list of names. */
function clientHello(name: Buffer | undefined, isList = false): Buffer {
  const extension = (type: number, content: Buffer): Buffer =>
    Buffer.concat([Buffer.from([type >> 8, type & 255]), sized(content, 2)]);
  const hex = (text: string): Buffer => Buffer.from(text, "hex");
  const extensions = Buffer.concat([
    ...(name === undefined ? [] : [extension(0, sized(isList ? name : serverName(name), 2))]),
    extension(10, hex("00020017")),
    extension(11, hex("0100")),
    extension(13, hex("000404030804")),
  ]);
  const body = Buffer.concat([
    hex("0303"),
    randomBytes(32),
    hex("00"),
    hex("0004c02bc02f"),
    hex("0100"),
    sized(extensions, 2),
  ]);
  return Buffer.concat([hex("01"), sized(body, 3)]);
}

/** Sends the parts, and returns which certificate the server shows, or that it ends the connection without one. */
async function certificateFor(port: number, parts: readonly Buffer[]): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let received = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    const found = SERVED.find(([, each]) => received.includes(each));
    if (found !== undefined) resolve(found[0]);
  });
  socket.on("error", () => undefined).once("close", () => resolve("refused"));
  const timer = setTimeout(() => reject(new Error("timeout")), 20_000);
  for (const part of parts) {
    socket.write(part);
    if (parts.length > 1) await delay(1);
  }
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}
