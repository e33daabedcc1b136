/** Several certificates (`server.tls.certificates`): a client gets the one for the name that it asks for, reloaded with the others. */
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import type { TLSSocket } from "node:tls";
import { join } from "node:path";
import { X509Certificate } from "node:crypto";
import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Status } from "../../../src/core/status.ts";
import { command } from "../../cli/command.ts";
import { ask } from "../../support/ask.ts";
import { clientAuthority } from "../../support/client-certificates.ts";
import { editConfiguration, replaceFile } from "../../support/edits.ts";
import { request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { type TlsExchangeOptions, tlsExchange } from "../../support/tls-client.ts";
import { until } from "../../support/until.ts";

vi.setConfig({ testTimeout: 60_000 });
const authority = await clientAuthority("Servers");

/** A certificate for these names. Its subject is the first. */
async function pair(names: readonly string[], days: readonly [number, number] = [-1, 90]) {
  const subject = [{ shortName: "CN", value: names[0] ?? "none" }];
  const altNames = names.map((name) => (name.includes(":") ? name : `DNS:${name}`));
  return authority.certificate({ usage: "serverAuth", subject, altNames, days });
}
type Pair = Awaited<ReturnType<typeof pair>>;

const [first, shop, any, wide] = [
  await pair(["first.example", "a.any.example", "IP:127.0.0.1", "localhost"]),
  await pair(["shop.example", "Www.Shop.EXAMPLE", "IP:127.0.0.2"]),
  await pair(["*.any.example"]),
  await pair(["b.any.example", "*.deep.any.example"]),
];
const ALL = { first, shop, any, wide };

const filesOf = (pairs: Readonly<Record<string, Pair>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(pairs).flatMap(([name, { cert, key }]) => [
      [`${name}.crt`, cert],
      [`${name}.key`, key],
    ]),
  );
const listed = (names: readonly string[]) =>
  names.map((name) => ({ certFile: `${name}.crt`, keyFile: `${name}.key` }));

function start(pairs: Readonly<Record<string, Pair>>, server: object = {}): Promise<Sallyport> {
  const tls = {
    certificates: listed(Object.keys(pairs)),
    certFile: undefined,
    keyFile: undefined,
  };
  return startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    config: { server: { tls, ...server } },
    files: filesOf(pairs),
  });
}

const GET = request(["GET /orders HTTP/1.1", "Host: localhost", "Connection: close"]);

/** The names of the certificate that a client gets which asks for a name; undefined asks for none. */
async function served(
  { port }: Pick<Sallyport, "port">,
  servername?: string,
  options: TlsExchangeOptions = {},
): Promise<string> {
  let names = "no certificate";
  const { error, raw } = await tlsExchange({ port }, GET, {
    servername: servername ?? "",
    rejectUnauthorized: false,
    ...options,
    onSecure: (socket) => (names = socket.getPeerX509Certificate()?.serialNumber ?? names),
  });
  expect([error, raw.slice(0, 12)]).toEqual([undefined, "HTTP/1.1 401"]);
  const found = Object.entries(ALL).find(([, { cert }]) => serialOf(cert) === names);
  return found?.[0] ?? names;
}

const serialOf = (cert: string): string => new X509Certificate(cert).serialNumber;

describe.each([1, 2])("with %i worker(s)", (workers) => {
  let gate: Sallyport;
  beforeAll(async () => (gate = await start(ALL, { workers, http2: true })), 60_000);
  afterAll(() => gate.close());

  it.each(["TLSv1.2", "TLSv1.3"] as const)(
    "the name chooses the certificate: %s",
    async (version) => {
      const chosen: Record<string, string> = {
        "": "first",
        "first.example": "first",
        "shop.example": "shop",
        "SHOP.eXample": "shop",
        "shop.example.": "shop",
        "www.shop.example": "shop",
        "c.any.example": "any",
        "*.any.example": "any",
        // An exact name is nearer than a wildcard, also that of the first certificate.
        "a.any.example": "first",
        "b.any.example": "wide",
        // A wildcard is for one label.
        "any.example": "first",
        "d.deep.any.example": "wide",
        "x.d.deep.any.example": "first",
        ".any.example": "first",
        "other.example": "first",
        "shop.example..": "first",
        "shop.example.com": "first",
        constructor: "first",
        __proto__: "first",
      };
      for (const [name, expected] of Object.entries(chosen)) {
        const got = await served(gate, name, { minVersion: version, maxVersion: version });
        expect([name, got]).toEqual([name, expected]);
      }
    },
  );

  it("ALPN and the chosen certificate are independent", async () => {
    const onSecure = (socket: TLSSocket) => socket.destroy();
    for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
      for (const servername of ["shop.example", "first.example"]) {
        const options = { servername, maxVersion, rejectUnauthorized: false };
        const chosen = async (ALPNProtocols: string[]) =>
          (await tlsExchange(gate, "", { ...options, ALPNProtocols, onSecure })).alpn;
        expect(await chosen(["h2", "http/1.1"])).toBe("h2");
        expect(await chosen(["http/1.1"])).toBe("http/1.1");
        expect(await chosen(["spdy/3"])).toBe(null);
      }
    }
  });

  it("each certificate has its own end in the metrics and among the dependencies", async () => {
    const metric = "sallyport_tls_certificate_not_after_timestamp_seconds";
    const page = await scrape(gate);
    for (const [name, { cert }] of Object.entries(ALL)) {
      const label = {
        first: "",
        shop: "shop.example",
        any: "*.any.example",
        wide: "b.any.example",
      }[name];
      const series = label ? `${metric}{name="${label}"}` : metric;
      const end = new X509Certificate(cert).validToDate.getTime();
      expect([series, page.value(series)]).toEqual([series, Math.floor(end / 1_000)]);
    }
    const status: Status = JSON.parse((await ask({ port: gate.adminPort }, "/-/status")).body);
    const rows = status.dependencies.filter(({ kind }) => kind === "certificate");
    expect(rows.map(({ name, state }) => `${name} ${state}`)).toEqual([
      "served good",
      "served (shop.example) good",
      "served (*.any.example) good",
      "served (b.any.example) good",
    ]);
  });
});

it("a reload takes all certificates or none", async () => {
  await using gate = await start({ first, shop });
  const [newShop, newFirst] = [await pair(["shop.example"]), await pair(["first.example"])];
  const errors = () => gate.log().filter(({ msg }) => msg === "the configuration was not reloaded");
  const another = () => gate.log().filter(({ msg }) => msg === "another certificate is served");
  const reload = () => ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  // The first is renewed, but the key of the other does not match.
  await replaceFile(gate, "shop.key", newShop.key);
  await replaceFile(gate, "first.key", newFirst.key);
  await replaceFile(gate, "first.crt", newFirst.cert);
  await reload();
  await until(() => errors().some(({ file }) => String(file).endsWith("shop.key")), 20_000);
  expect(await served(gate, "first.example")).toBe("first");
  expect(await served(gate, "shop.example")).toBe("shop");
  await replaceFile(gate, "shop.crt", newShop.cert);
  await reload();
  await until(() => another().length === 2, 20_000);
  expect(another().map(({ serverName }) => serverName)).toEqual(["first.example", "shop.example"]);
  expect(await served(gate)).toBe(serialOf(newFirst.cert));
  expect(await served(gate, "shop.example")).toBe(serialOf(newShop.cert));

  // The list itself is reloaded, too.
  for (const [name, text] of Object.entries(filesOf({ any }))) await replaceFile(gate, name, text);
  await editConfiguration(gate, ({ server }) => {
    server["tls"] = { certificates: listed(["first", "shop", "any"]) };
  });
  await reload();
  await until(async () => (await served(gate, "x.any.example")) === "any", 20_000);
  // One that has ended is refused in place of a valid one.
  const ended = await pair(["shop.example"], [-30, -1]);
  await replaceFile(gate, "shop.key", ended.key);
  await replaceFile(gate, "shop.crt", ended.cert);
  await reload();
  await until(() => errors().some(({ message }) => /not valid now/.test(String(message))), 20_000);
  expect(errors().at(-1)).toMatchObject({ file: expect.stringMatching(/shop\.crt$/) });
  expect(await served(gate, "shop.example")).toBe(serialOf(newShop.cert));
  // Down to one.
  await editConfiguration(gate, ({ server }) => {
    server["tls"] = { certificates: listed(["first"]) };
  });
  await reload();
  await until(async () => (await served(gate, "shop.example")) === serialOf(newFirst.cert), 20_000);
});

it("the name chooses behind a header of the PROXY protocol, too", async () => {
  const proxied = { proxyProtocol: "accept", trustedProxies: ["127.0.0.1"] };
  await using gate = await start({ first, shop }, proxied);
  for (const servername of ["shop.example", "first.example"]) {
    const socket = connect({ host: "127.0.0.1", port: gate.port });
    socket.write("PROXY TCP4 203.0.113.7 10.0.0.1 4660 443\r\n");
    expect(`${await served(gate, servername, { socket })}.example`).toBe(servername);
  }
  const clients = () => gate.log().flatMap(({ client }) => client ?? []);
  await until(() => clients().length === 2);
  expect(clients()).toEqual(["203.0.113.7", "203.0.113.7"]);
});

it("a list instead of one pair is served after a restart", async () => {
  await using gate = await startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    files: filesOf({ first, shop }),
  });
  await editConfiguration(gate, ({ server }) => {
    server["tls"] = { certificates: listed(["first", "shop"]) };
  });
  const { body } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(JSON.parse(body)).toMatchObject({ success: true, needRestart: ["server.tls.mode"] });
  const before = await served(gate, "shop.example");
  expect(["first", "shop"]).not.toContain(before);
});

async function rsa(name: string): Promise<Pair> {
  const altNames = [{ type: 2, value: name } as const];
  const made = await generate([{ name: "commonName", value: name }], {
    keySize: 2048,
    algorithm: "sha256",
    extensions: [{ name: "subjectAltName", altNames }],
  });
  return { key: made.private, cert: made.cert };
}

it("an RSA certificate can be the first of others, and the client's order of algorithms does not matter", async () => {
  await using gate = await start({ old, shop });
  const both = "rsa_pss_rsae_sha256:ecdsa_secp256r1_sha256:rsa_pkcs1_sha256";
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    for (const sigalgs of [undefined, both]) {
      const options = { maxVersion, ...(sigalgs !== undefined && { sigalgs }) };
      expect(await served(gate, "shop.example", options)).toBe("shop");
      expect(await served(gate, "old.example", options)).toBe(serialOf(old.cert));
      expect(await served(gate, undefined, options)).toBe(serialOf(old.cert));
    }
  }
});

const shopToo = await pair(["other.example", "www.shop.example."]);
const anyToo = await pair(["*.any.example"]);
const nameless = await pair(["IP:127.0.0.3"]);
const old = await rsa("old.example");

describe("check", () => {
  let gate: Sallyport;
  beforeAll(async () => (gate = await start({ first })), 60_000);
  afterAll(() => gate.close());

  async function checked(pairs: Readonly<Record<string, Pair>>, ...more: string[]) {
    const names = Object.keys(pairs);
    for (const [name, text] of Object.entries(filesOf(pairs))) {
      await replaceFile(gate, name, text);
    }
    const config: { server: { tls: unknown } } = JSON.parse(
      await readFile(join(gate.directory, "config.yaml"), "utf8"),
    );
    config.server.tls = { certificates: listed(names) };
    await replaceFile(gate, "other.yaml", JSON.stringify(config));
    const file = join(gate.directory, "other.yaml");
    return command(["check", "--config", file, ...more]);
  }

  it.each<[string, Record<string, Pair>, RegExp]>([
    [
      "two for one name",
      { first, shop, shopToo },
      /shopToo\.crt.* is for www\.shop\.example, and so is .*shop\.crt/,
    ],
    [
      "two for one wildcard",
      { any, anyToo },
      /anyToo\.crt.* is for \*\.any\.example, and so is .*any\.crt/,
    ],
    [
      "one twice",
      { first, shop, again: shop },
      /again\.crt.* is for shop\.example, and so is .*shop\.crt/,
    ],
    ["one that nobody can ask for", { first, nameless }, /nameless\.crt.* has no DNS name/],
    [
      "a pair that does not match",
      { first, shop: { cert: shop.cert, key: any.key } },
      /shop\.key.* is not the key of .*shop\.crt/,
    ],
    [
      "no certificate",
      { first, shop: { cert: "none", key: shop.key } },
      /shop\.crt.* holds no PEM certificate/,
    ],
    [
      "an RSA key behind another",
      { first, old },
      /old\.crt.* has another kind of key than .*first\.crt/,
    ],
  ])("refuses %s", async (_what, pairs, message) => {
    const { code, err } = await checked(pairs);
    expect(err).toMatch(message);
    expect(code).toBe(78);
  });

  it("accepts good ones, and warns of one that ends soon", async () => {
    expect((await checked({ first: nameless, shop, any })).code).toBe(0);
    const soon = await pair(["soon.example"], [-1, 5]);
    const { out, err, code } = await checked({ first, shop, soon });
    expect([code, out + err]).toEqual([
      0,
      expect.stringMatching(/soon\.crt: the certificate ends in 4 days/),
    ]);
    expect((await checked({ first, shop, soon }, "--strict")).code).not.toBe(0);
    const doctor = await command(["doctor", "--config", join(gate.directory, "other.yaml")]);
    expect(doctor.out).toMatch(/soon\.crt.*ends in 4 days/);
  });

  it.each([
    [{ certificates: [] }],
    [{ certificates: listed(["first"]), certFile: "first.crt", keyFile: "first.key" }],
    [{ certificates: listed(["first"]), keyFile: "first.key" }],
    [{ certificates: listed(["first"]), selfSigned: true }],
    [{ certificates: [{ certFile: "first.crt" }] }],
  ])("refuses %j", async (tls) => {
    const { code, err } = await command([
      "check",
      "--config",
      join(gate.directory, "config.yaml"),
      "--set",
      `server.tls=${JSON.stringify(tls)}`,
    ]);
    expect([code, err]).toEqual([78, expect.stringMatching(/server\.tls/)]);
  });
});
