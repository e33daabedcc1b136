/**
 * Client certificates as a way in. A server that asks for a certificate without insisting leaves it to the application to
 * look whether it was a good one (Node's `rejectUnauthorized: false`): whoever forgets takes the name in a self-made
 * certificate for proven. Where it insists, a resumed session lets in who could not show the certificate again
 * (CVE-2025-23419, nginx), a name with a line break or a comma in it reads like another (CVE-2021-44533, Node), and a client
 * without any certificate just sends the header that tells the backend its subject.
 */
import { once } from "node:events";
import { randomBytes } from "node:crypto";
import { createServer, type ServerOptions } from "node:https";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { testCertificates } from "../support/certificates.ts";
import { ALICE_SUBJECT, clientAuthority } from "../support/client-certificates.ts";
import { listening } from "../support/listening.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";
import { scrape } from "../support/scrape.ts";
import { tlsExchange } from "../support/tls-client.ts";
import { until } from "../support/until.ts";
import { valuesOf, type HttpMessage } from "../support/http-reader.ts";

const authority = await clientAuthority();
/** Of the same name as the other: only the signature tells them apart. */
const impostor = await clientAuthority();
const alice = await authority.certificate();

const WRONG = {
  "of another authority with the same name": await impostor.certificate(),
  "that has ended": await authority.certificate({ days: [-30, -1] }),
  "that has not begun": await authority.certificate({ days: [1, 30] }),
  "that is for servers": await authority.certificate({ usage: "serverAuth" }),
};
const HEADER = "x-auth-client-subject";
const ALIASES = [
  ...["X-Auth-Client-Subject", "x-auth-client-subject", "X_Auth_Client_Subject"],
  ...["X-Auth.Client-Subject", "X-AUTH-CLIENT_SUBJECT"],
];

const clientCertificates = (mode: "optional" | "required") => ({
  config: { server: { tls: { clientCertificates: { mode, caFile: "clients.crt" } } } },
  files: { "clients.crt": authority.cert },
});
const get = (path: string, ...more: string[]): string =>
  request([`GET ${path} HTTP/1.1`, "Host: localhost", ...more, "Connection: close"]);
const forged = ALIASES.map((name) => `${name}: CN=root`);

/** What the backend got under the header's name, in any spelling. */
function told(requests: readonly HttpMessage[]): string[] {
  return requests.flatMap(({ headers }) =>
    headers
      .filter(([name]) => name.toLowerCase().replaceAll(/[_.]/g, "-") === HEADER)
      .map(([, value]) => value),
  );
}

describe("where a certificate is required", () => {
  const standing = useSallyport(undefined, {
    ...clientCertificates("required"),
    clientCertificate: alice,
  });

  it("a valid one is let in, and its subject goes to the backend, once", async () => {
    const { gate, backend } = standing();
    const bearer = `Authorization: Bearer ${gate.token}`;
    for (const path of ["/public/x", "/orders"]) {
      const answer = await tlsExchange(gate, get(path, bearer, ...forged), alice);
      expect(answer.raw).toMatch(/^HTTP\/1\.1 200 /);
    }
    expect(told(backend.requests())).toEqual(Array(2).fill("CN=alice,OU=sales,O=Example"));
  });

  it("a valid one is no token", async () => {
    const { gate, backend } = standing();
    expect((await tlsExchange(gate, get("/orders"), alice)).raw).toMatch(/^HTTP\/1\.1 401 /);
    expect(backend.seen()).toEqual([]);
  });

  it.each([["that is missing", {}], ...Object.entries(WRONG)])(
    "one %s gets no answer at all, and is counted",
    async (_name, certificate) => {
      const { gate, backend } = standing();
      const counted = async (): Promise<number | undefined> =>
        (await scrape(gate)).value('sallyport_requests_rejected_total{reason="tls_handshake"}');
      const before = (await counted()) ?? 0;
      for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
        const answer = await tlsExchange(gate, get("/public/x"), { ...certificate, maxVersion });
        expect([answer.raw, answer.error === "timeout"]).toEqual(["", false]);
      }
      await until(async () => (await counted()) === before + 2);
      expect(backend.seen()).toEqual([]);
    },
  );

  it.each(["TLSv1.2", "TLSv1.3"] as const)("no session is resumed: %s", async (version) => {
    const { gate } = standing();
    const versions = { minVersion: version, maxVersion: version } as const;
    const first = await tlsExchange(gate, get("/public/x"), { ...alice, ...versions });
    expect(first.raw).toMatch(/^HTTP\/1\.1 200 /);
    const session = first.session === undefined ? {} : { session: first.session };
    const again = await tlsExchange(gate, get("/public/x"), { ...alice, ...versions, ...session });
    expect([again.raw.slice(0, 12), again.resumed]).toEqual(["HTTP/1.1 200", false]);
    const without = await tlsExchange(gate, get("/public/x"), { ...versions, ...session });
    expect([without.raw, without.resumed]).toEqual(["", false]);
  });
});

describe("where a certificate is optional", () => {
  const standing = useSallyport(undefined, clientCertificates("optional"));

  it("who shows none is let in, and is nobody", async () => {
    const { gate, backend } = standing();
    const answer = await tlsExchange(gate, get("/public/x", ...forged));
    expect(answer.raw).toMatch(/^HTTP\/1\.1 200 /);
    expect(told(backend.requests())).toEqual([]);
    expect(backend.seen()).toHaveLength(1);
  });

  it.each(Object.entries(WRONG))("one %s is refused, not passed over", async (_name, wrong) => {
    const { gate, backend } = standing();
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const answer = await tlsExchange(gate, get("/public/x"), { ...wrong, maxVersion });
      expect([answer.raw, answer.error === "timeout"]).toEqual(["", false]);
    }
    expect(backend.seen()).toEqual([]);
  });

  it.each([
    ["a name in another script", [{ shortName: "CN", value: "Zo\u00EB" }], "CN%3DZo%C3%AB"],
    [
      "a line break",
      [{ shortName: "CN", value: "eve\nO=Example\r\nX-Admin: 1" }],
      String.raw`CN=eve\0AO=Example\0D\0AX-Admin: 1`,
    ],
    [
      "a comma and a plus sign",
      [{ shortName: "CN", value: "eve,O=Example + OU=admin" }],
      String.raw`CN=eve\,O=Example \+ OU=admin`,
    ],
  ])("%s in the subject stays one value", async (_name, subject, value) => {
    const { gate, backend } = standing();
    const certificate = await authority.certificate({ subject });
    await tlsExchange(gate, get("/public/x"), certificate);
    expect(told(backend.requests())).toEqual([value]);
  });

  it("requests on one connection have one subject, whatever they say", async () => {
    const { gate, backend } = standing();
    const first = request(["GET /public/a HTTP/1.1", "Host: localhost", ...forged]);
    await tlsExchange(gate, first + get("/public/b", ...forged), alice);
    expect(backend.seen()).toEqual(["GET /public/a", "GET /public/b"]);
    expect(told(backend.requests())).toEqual(Array(2).fill("CN=alice,OU=sales,O=Example"));
  });

  it("an upgrade carries the subject, too", async () => {
    const { gate, backend } = standing();
    const url = `wss://127.0.0.1:${gate.port}/public/socket`;
    const socket = new WebSocket(url, { ca: gate.ca, ...alice, headers: { [HEADER]: "CN=root" } });
    // The backend is none for WebSockets: what matters is what it was asked.
    await once(socket, "unexpected-response").catch(() => undefined);
    socket.on("error", () => undefined).terminate();
    const [asked] = backend.requests();
    expect(valuesOf(asked?.headers ?? [], "upgrade")).toEqual(["websocket"]);
    expect(told(backend.requests())).toEqual(["CN=alice,OU=sales,O=Example"]);
  });
});

describe("where none is asked for", () => {
  const standing = useSallyport();

  it("the header is nobody's to send", async () => {
    const { gate, backend } = standing();
    await tlsExchange(gate, get("/public/x", ...forged), alice);
    expect(backend.seen()).toEqual(["GET /public/x"]);
    expect(told(backend.requests())).toEqual([]);
  });
});

async function plainServer(options: ServerOptions) {
  const { server: pair, ca } = await testCertificates();
  const given = { ...pair, ca: authority.cert, requestCert: true, ...options };
  const server = createServer(given, (_request, response) => response.end("ok"));
  const seen: unknown[] = [];
  server.on("secureConnection", (socket) => seen.push(socket.getPeerCertificate().subject?.CN));
  const standing = await listening(server);
  return { ...standing, ca, seen };
}

describe("a server that asks and does not look", () => {
  it("believes a certificate that anybody can make", async () => {
    await using naive = await plainServer({ rejectUnauthorized: false });
    const selfMade = await impostor.certificate({ subject: ALICE_SUBJECT });
    expect((await tlsExchange(naive, get("/"), selfMade)).raw).toMatch(/^HTTP\/1\.1 200 /);
    expect(naive.seen).toEqual(["alice"]);
  });
});

describe("a server that insists, and resumes sessions from before its authorities changed", () => {
  it("lets in who cannot show the certificate, as whoever could", async () => {
    const shared = { ticketKeys: randomBytes(48), sessionIdContext: "shared" };
    await using before = await plainServer({ ...shared, rejectUnauthorized: true });
    await using after = await plainServer({
      ...{ ...shared, rejectUnauthorized: true, ca: impostor.cert },
    });
    const { session } = await tlsExchange(before, get("/"), alice);
    expect((await tlsExchange(after, get("/"), alice)).raw).toBe("");
    const resumed = await tlsExchange(after, get("/"), { ...(session && { session }) });
    expect([resumed.raw.slice(0, 12), resumed.resumed]).toEqual(["HTTP/1.1 200", true]);
    expect(after.seen).toEqual(["alice"]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("hands the header on, whoever sends it", async () => {
    const { gate, backend } = standing();
    await exchange(gate, get("/public/x", ...forged));
    expect(told(backend.requests())).toContain("CN=root");
  });
});
