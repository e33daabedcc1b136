/**
 * Downgrades. TLS 1.0 and 1.1, suites without forward secrecy or with CBC (BEAST, POODLE, Lucky 13, Raccoon) and
 * renegotiation (CVE-2009-3555, CVE-2011-1473) remain in the libraries for those who want them: OpenSSL's
 * configuration file and Node's command line can enable them without the application's knowledge. So the application
 * itself must specify what is negotiated, and neither may override it.
 */
import { createServer, type ServerOptions } from "node:https";
import { describe, expect, it } from "vitest";
import { testCertificates } from "../support/certificates.ts";
import { listening } from "../support/listening.ts";
import { useSallyport } from "../support/pair.ts";
import { type Peer, request } from "../support/raw-client.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { tlsExchange, type TlsExchangeOptions } from "../support/tls-client.ts";

const GET = request(["GET /public/x HTTP/1.1", "Host: localhost", "Connection: close"]);
/** A client that accepts anything. */
const ANYTHING = "ALL:COMPLEMENTOFALL:@SECLEVEL=0";
const only = (version: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3"): TlsExchangeOptions => ({
  minVersion: version,
  maxVersion: version,
  ciphers: ANYTHING,
});

/** Weak suites of TLS 1.2, each for a certificate on P-256 or for none. */
const WEAK = [
  ...["ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES128-CCM8"],
  ...["ECDHE-ECDSA-NULL-SHA", "AECDH-AES128-SHA", "AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"],
];
const STRONG = [
  ...["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"],
  "ECDHE-ECDSA-CHACHA20-POLY1305",
];

/** Enables old versions and weak suites for every program that does not disable them. */
await using lax = await temporaryDirectory();
const configuration = await lax.write(
  "openssl.cnf",
  `nodejs_conf = init
openssl_conf = init
[init]
ssl_conf = ssl
[ssl]
system_default = lax
[lax]
MinProtocol = TLSv1
CipherString = ALL:@SECLEVEL=0
Options = UnsafeLegacyRenegotiation
`,
);
const SWITCHES = `--tls-min-v1.0 --tls-cipher-list=${ANYTHING} --openssl-config=${configuration}`;

describe.each([
  ["by default", {}],
  ["with OpenSSL's configuration and Node's command line against it", { NODE_OPTIONS: SWITCHES }],
])("Sallyport %s", (_name, env: Record<string, string>) => {
  const standing = useSallyport(undefined, { withoutToken: true, env });

  it.each(["TLSv1", "TLSv1.1"] as const)("refuses %s", async (version) => {
    const answer = await tlsExchange(standing().gate, GET, only(version));
    expect([answer.raw, answer.protocol]).toEqual(["", undefined]);
    expect(answer.error).toMatch(/alert protocol version/i);
  });

  it.each(["TLSv1.2", "TLSv1.3"] as const)("speaks %s", async (version) => {
    const answer = await tlsExchange(standing().gate, GET, only(version));
    expect([answer.raw.slice(0, 12), answer.protocol]).toEqual(["HTTP/1.1 200", version]);
  });

  it.each(WEAK)("refuses %s", async (suite) => {
    const options = { maxVersion: "TLSv1.2", ciphers: `${suite}:@SECLEVEL=0` } as const;
    const answer = await tlsExchange(standing().gate, GET, options);
    expect([answer.raw, answer.protocol]).toEqual(["", undefined]);
    expect(answer.error).toMatch(/alert handshake failure/i);
  });

  it.each(STRONG)("speaks %s", async (suite) => {
    const answer = await tlsExchange(standing().gate, GET, {
      maxVersion: "TLSv1.2",
      ciphers: suite,
    });
    expect(answer.raw).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("chooses the suite itself", async () => {
    const ciphers = STRONG.toReversed().join(":");
    const answer = await tlsExchange(standing().gate, GET, { maxVersion: "TLSv1.2", ciphers });
    expect(answer.cipher).toBe("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256");
  });

  it("prefers AES-128 in TLS 1.3, and speaks AES-256 and ChaCha20 with clients that have nothing else", async () => {
    const [aes128, aes256, chacha] = [
      "TLS_AES_128_GCM_SHA256",
      "TLS_AES_256_GCM_SHA384",
      "TLS_CHACHA20_POLY1305_SHA256",
    ];
    for (const [offered, chosen] of [
      [[chacha, aes256, aes128], aes128],
      [[chacha, aes256], aes256],
      [[chacha], chacha],
    ] as const) {
      const options = { minVersion: "TLSv1.3", ciphers: offered.join(":") } as const;
      expect((await tlsExchange(standing().gate, GET, options)).cipher).toBe(chosen);
    }
  });

  it("negotiates once", async () => {
    const { gate, backend } = standing();
    expect(await renegotiated(gate)).toBe(false);
    expect(backend.seen()).toEqual([]);
  });
});

describe("Sallyport with only TLS 1.3", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: { server: { tls: { minVersion: "TLSv1.3" } } },
  });

  it("refuses TLSv1.2", async () => {
    const { gate } = standing();
    expect((await tlsExchange(gate, GET, only("TLSv1.2"))).raw).toBe("");
    expect((await tlsExchange(gate, GET, only("TLSv1.3"))).raw).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("a simple server on Node", () => {
  const lower = { minVersion: "TLSv1", ciphers: ANYTHING } as const;

  it.each(["TLSv1", "TLSv1.1"] as const)("speaks %s", async (version) => {
    await using server = await plainServer(lower);
    const answer = await tlsExchange(server, GET, only(version));
    expect([answer.raw.slice(0, 12), answer.protocol]).toEqual(["HTTP/1.1 200", version]);
  });

  it.each(WEAK.slice(0, 4))("speaks %s", async (suite) => {
    await using server = await plainServer(lower);
    const options = { maxVersion: "TLSv1.2", ciphers: `${suite}:@SECLEVEL=0` } as const;
    expect((await tlsExchange(server, GET, options)).raw).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("negotiates again", async () => {
    await using server = await plainServer({});
    expect(await renegotiated(server)).toBe(true);
  });
});

/** Whether a second handshake on one TLS 1.2 connection was completed. */
async function renegotiated(peer: Peer): Promise<boolean> {
  let again = false;
  await tlsExchange(peer, "", {
    maxVersion: "TLSv1.2",
    onSecure(socket) {
      socket.renegotiate({ rejectUnauthorized: true }, (error) => {
        again = error === null;
        socket.destroy();
      });
    },
  });
  return again;
}

async function plainServer(options: ServerOptions): Promise<Peer & AsyncDisposable> {
  const { server: pair, ca } = await testCertificates();
  const server = createServer({ ...pair, ...options }, (_request, response) => response.end("ok"));
  server.on("clientError", (_error, socket) => socket.destroy());
  return { ...(await listening(server)), ca };
}
