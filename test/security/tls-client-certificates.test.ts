/**
 * Client certificates as a way in. A server that requests a certificate without requiring it leaves it to the
 * application to check whether it was valid (Node's `rejectUnauthorized: false`): without that check, the name in a
 * self-made certificate counts as proven. If it requires one, a resumed session lets in a client that could not
 * present the certificate again (CVE-2025-23419, nginx); a name with a line break or a comma reads like another one
 * (CVE-2021-44533, Node); and a client without any certificate just sends the header with the subject for the
 * backend.
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
/** With the same name as the other: only the signatures differ. */
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

/** Returns what the backend got under the header's name, in any spelling. */
function told(requests: readonly HttpMessage[]): string[] {
  return requests.flatMap(({ headers }) =>
    headers
      .filter(([name]) => name.toLowerCase().replaceAll(/[_.]/g, "-") === HEADER)
      .map(([, value]) => value),
  );
}

describe("if a certificate is required", () => {
  const standing = useSallyport(undefined, {
    ...clientCertificates("required"),
    clientCertificate: alice,
  });

  it("a valid one is accepted, and its subject is sent to the backend once", async () => {
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

describe("if a certificate is optional", () => {
  const standing = useSallyport(undefined, clientCertificates("optional"));

  it("a client without one is accepted, without a subject", async () => {
    const { gate, backend } = standing();
    const answer = await tlsExchange(gate, get("/public/x", ...forged));
    expect(answer.raw).toMatch(/^HTTP\/1\.1 200 /);
    expect(told(backend.requests())).toEqual([]);
    expect(backend.seen()).toHaveLength(1);
  });

  it.each(Object.entries(WRONG))("one %s is refused, not ignored", async (_name, wrong) => {
    const { gate, backend } = standing();
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      const answer = await tlsExchange(gate, get("/public/x"), { ...wrong, maxVersion });
      expect([answer.raw, answer.error === "timeout"]).toEqual(["", false]);
    }
    expect(backend.seen()).toEqual([]);
  });

  it.each([
    ["a name in another script", [{ shortName: "CN", value: "Zo\u00EB" }], "CN=Zo%C3%AB"],
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

  it("an upgrade has the subject, too", async () => {
    const { gate, backend } = standing();
    const url = `wss://127.0.0.1:${gate.port}/public/socket`;
    const socket = new WebSocket(url, { ca: gate.ca, ...alice, headers: { [HEADER]: "CN=root" } });
    // The backend does not support WebSockets: only the request that it got matters.
    await once(socket, "unexpected-response").catch(() => undefined);
    socket.on("error", () => undefined).terminate();
    const [asked] = backend.requests();
    expect(valuesOf(asked?.headers ?? [], "upgrade")).toEqual(["websocket"]);
    expect(told(backend.requests())).toEqual(["CN=alice,OU=sales,O=Example"]);
  });
});

describe("if none is requested", () => {
  const standing = useSallyport();

  it("no one may send the header", async () => {
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

describe("a server that requests a certificate and does not check it", () => {
  it("accepts a certificate that anyone can create", async () => {
    await using naive = await plainServer({ rejectUnauthorized: false });
    const selfMade = await impostor.certificate({ subject: ALICE_SUBJECT });
    expect((await tlsExchange(naive, get("/"), selfMade)).raw).toMatch(/^HTTP\/1\.1 200 /);
    expect(naive.seen).toEqual(["alice"]);
  });
});

describe("a server that requires one, and resumes sessions from before its CAs changed", () => {
  it("lets in a client that can no longer present the certificate", async () => {
    const shared = { ticketKeys: randomBytes(48), sessionIdContext: "shared" };
    await using before = await plainServer({ ...shared, rejectUnauthorized: true });
    await using after = await plainServer({
      ...shared,
      rejectUnauthorized: true,
      ca: impostor.cert,
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

  it("passes on the header, whoever sends it", async () => {
    const { gate, backend } = standing();
    await exchange(gate, get("/public/x", ...forged));
    expect(told(backend.requests())).toContain("CN=root");
  });
});
