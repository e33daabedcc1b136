/**
 * A reload of several certificates: an ended one slips into the place of a valid one because the list has changed, too; each name's
 * context costs as much as all authorities of clients, so that a renewal fills the memory; a handshake that
 * began before keeps an authority that is no longer trusted.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { rootCertificates } from "node:tls";
import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ask } from "../../support/ask.ts";
import { clientAuthority } from "../../support/client-certificates.ts";
import { editConfiguration, replaceFile } from "../../support/edits.ts";
import { startRawBackend } from "../../support/raw-backend.ts";
import { request } from "../../support/raw-client.ts";
import { peakResidentBytes } from "../../support/resident-memory.ts";
import { type Sallyport, type SallyportOptions, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { tlsExchange, type TlsExchangeOptions } from "../../support/tls-client.ts";

vi.setConfig({ testTimeout: 90_000 });
const servers = await clientAuthority("Servers");
const pair = (altNames: readonly string[], days: readonly [number, number] = [-1, 90]) =>
  servers.certificate({ usage: "serverAuth", altNames, days });
type Pair = Awaited<ReturnType<typeof pair>>;
type Pairs = Readonly<Record<string, Pair>>;

const filesOf = (pairs: Pairs) =>
  Object.entries(pairs).flatMap(([name, { cert, key }]): [string, string][] => [
    [`${name}.crt`, cert],
    [`${name}.key`, key],
  ]);
const listed = (names: readonly string[]) =>
  names.map((name) => ({ certFile: `${name}.crt`, keyFile: `${name}.key` }));

interface Starting extends Partial<SallyportOptions> {
  readonly server?: object;
  readonly tls?: object;
  readonly routes?: readonly object[];
}

function start(pairs: Pairs, { server, tls, routes, files, ...more }: Starting = {}) {
  const certificates = listed(Object.keys(pairs));
  const all = { certFile: undefined, keyFile: undefined, certificates, ...tls };
  return startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    config: { server: { tls: all, ...server }, ...(routes && { routes }) },
    files: { ...Object.fromEntries(filesOf(pairs)), ...files },
    ...more,
  });
}

const clientCertificates = { mode: "optional", caFile: "clients.crt" };
const GET = request(["GET /x HTTP/1.1", "Host: localhost", "Connection: close"]);

/** The serial number of the certificate that a client gets. */
async function served(gate: Sallyport, servername: string, options: TlsExchangeOptions = {}) {
  let serial = "none";
  const { error } = await tlsExchange({ port: gate.port }, GET, {
    servername,
    rejectUnauthorized: false,
    timeoutMs: 30_000,
    ...options,
    onSecure: (socket) => (serial = socket.getPeerX509Certificate()?.serialNumber ?? serial),
  });
  expect(error).toBe(undefined);
  return serial;
}
const serialOf = ({ cert }: Pair): string => new X509Certificate(cert).serialNumber;

async function reload(gate: Sallyport, names?: readonly string[], pairs: Pairs = {}) {
  for (const [name, text] of filesOf(pairs)) await replaceFile(gate, name, text);
  if (names !== undefined) {
    await editConfiguration(gate, ({ server }) => {
      server["tls"] = { ...Object(server["tls"]), certificates: listed(names) };
    });
  }
  const { body } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  return body;
}

describe("a list that changes together with its files", () => {
  let gate: Sallyport;
  let pairs: Record<"first" | "shop" | "ended", Pair>;
  beforeAll(async () => {
    const ended = await pair(["DNS:ended.example"], [-30, -1]);
    const [first, shop] = [
      await pair(["DNS:first.example"]),
      await pair(["DNS:shop.example", "DNS:*.wild.example"]),
    ];
    pairs = { first, shop, ended };
    gate = await start(pairs);
  });
  afterAll(() => gate.close());

  it("an ended certificate never replaces the valid one of its name, wherever it stands", async () => {
    const former: [number, number] = [-30, -1];
    const [fresh, shop] = [
      await pair(["DNS:fresh.example"]),
      await pair(["DNS:shop.example"], former),
    ];
    const under = await pair(["DNS:a.wild.example"], former);
    const changes: [string[], Pairs, RegExp][] = [
      [
        ["first", "fresh", "ended", "renewed"],
        { fresh, renewed: shop },
        /renewed\.crt.*not valid now/,
      ],
      [["first", "shop", "ended", "under"], { under }, /under\.crt.*not valid now/],
      [["ended", "first", "shop"], {}, /ended\.crt.*not valid now/],
    ];
    for (const [names, files, message] of changes) {
      expect(await reload(gate, names, files)).toMatch(message);
      expect(await served(gate, "shop.example")).toBe(serialOf(pairs.shop));
      expect(await served(gate, "a.wild.example")).toBe(serialOf(pairs.shop));
      expect(await served(gate, "")).toBe(serialOf(pairs.first));
    }
  });

  it("one that has ended where it stands hinders no change of the others", async () => {
    const fresh = await pair(["DNS:fresh.example"]);
    for (const names of [
      ["first", "ended"],
      ["first", "fresh", "ended"],
      ["first", "ended", "shop"],
    ]) {
      expect(await reload(gate, names, { fresh })).toMatch(/"success": true/);
      expect(await served(gate, "ended.example")).toBe(serialOf(pairs.ended));
    }
    // Sessions, metrics and rows of those that are gone are gone, too.
    const series = "sallyport_tls_certificate_not_after_timestamp_seconds";
    const page = await scrape(gate);
    expect(page.value(`${series}{name="fresh.example"}`)).toBe(undefined);
    expect(page.value(`${series}{name="shop.example"}`)).toBeDefined();
  });
});

it("a renewal does not fill the memory with all authorities, once for each certificate", async () => {
  const names = Array.from({ length: 150 }, (_each, index) => `host${index}.example`);
  const pairs: Pairs = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await pair([`DNS:${name}`])] as const)),
  );
  await using gate = await start(pairs, {
    tls: { clientCertificates },
    files: { "clients.crt": rootCertificates.join("\n") },
  });
  const [name = ""] = names;
  expect(Object.values(pairs).map(serialOf)).toContain(await served(gate, name));
  const before = await peakResidentBytes(gate);
  for (let round = 0; round < 3; round += 1) {
    const renewed = await pair([`DNS:${name}`]);
    expect(await reload(gate, undefined, { [name]: renewed })).toMatch(/"success": true/);
    expect(await served(gate, name)).toBe(serialOf(renewed));
  }
  expect(await peakResidentBytes(gate)).toBeLessThan(before + 100 * 2 ** 20);
});

describe.each([1, 2])("with %i worker(s)", (workers) => {
  it("a handshake that began before a reload brings no authority back that the reload removed", async () => {
    const [clients, others] = [await clientAuthority(), await clientAuthority("Other clients")];
    const alice = await clients.certificate();
    const [first, shop] = [await pair(["DNS:first.example"]), await pair(["DNS:shop.example"])];
    await using backend = await startRawBackend();
    const routes = [
      { name: "certified", path: "/x", auth: "certificate", upstream: "app" },
      { name: "open", path: "/", auth: "none", upstream: "app" },
    ];
    await using gate = await start(
      { first, shop },
      {
        target: backend.url,
        server: { workers },
        tls: { clientCertificates },
        routes,
        files: { "clients.crt": clients.cert },
      },
    );
    const names = ["", "first.example", "shop.example"];
    const options = { rejectUnauthorized: false, ...alice, timeoutMs: 30_000 };
    const statuses = async (sockets: readonly Socket[], path: string) =>
      Promise.all(
        sockets.map(async (socket, index) => {
          const servername = names[index % names.length] ?? "";
          const { raw } = await tlsExchange(gate, GET.replace("/x", path), {
            ...options,
            socket,
            servername,
          });
          return raw.slice(9, 12);
        }),
      );
    const connections = () =>
      Promise.all(
        [...names, ...names].map(async () => {
          const socket = connect({ host: "127.0.0.1", port: gate.port });
          await once(socket, "connect");
          return socket;
        }),
      );
    expect(new Set(await statuses(await connections(), "/x"))).toEqual(new Set(["200"]));
    const [early, earlyToo] = [await connections(), await connections()];
    await delay(300);
    backend.forget();
    await replaceFile(gate, "clients.crt", others.cert);
    expect(await reload(gate)).toMatch(/"success": true/);
    const got = new Set([...(await statuses(early, "/x")), ...(await statuses(earlyToo, "/open"))]);
    expect(got).not.toContain("200");
    expect(backend.requests()).toEqual([]);
    expect(new Set(await statuses(await connections(), "/x"))).toEqual(new Set([""]));
  });

  it("while files are replaced under load, each handshake gets a certificate of its name", async () => {
    const [first, shop] = [await pair(["DNS:first.example"]), await pair(["DNS:shop.example"])];
    const all = new Map([
      [serialOf(first), "first"],
      [serialOf(shop), "shop"],
    ]);
    await using gate = await start({ first, shop }, { server: { workers } });
    const running = new AbortController();
    let count = 0;
    const wrong: string[] = [];
    const clients = ["shop.example", "first.example", ""].map(async (name) => {
      while (!running.signal.aborted) {
        const serial = await served(gate, name, { ALPNProtocols: ["http/1.1"] });
        count += 1;
        const who = all.get(serial);
        if (who !== (name === "" ? "first" : name.split(".")[0])) wrong.push(`${name}: ${who}`);
      }
    });
    for (let round = 0; round < 6; round += 1) {
      const renewed = await pair(["DNS:shop.example"]);
      all.set(serialOf(renewed), "shop");
      // Key and certificate do not match for a moment.
      await replaceFile(gate, "shop.key", renewed.key);
      expect(await reload(gate)).toMatch(/"success": false/);
      await replaceFile(gate, "shop.crt", renewed.cert);
      expect(await reload(gate)).toMatch(/"success": true/);
    }
    running.abort();
    await Promise.all(clients);
    expect(count).toBeGreaterThan(12);
    expect(wrong).toEqual([]);
  });
});
