/** A certificate that is not valid now never replaces one that is: the reload fails, and the valid one stays in force. */
import { X509Certificate } from "node:crypto";
import { connect } from "node:tls";
import { once } from "node:events";
import { expect, it, vi } from "vitest";
import { type ClientAuthority, clientAuthority } from "../../support/client-certificates.ts";
import { replaceFile } from "../../support/edits.ts";
import { request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { tlsExchange } from "../../support/tls-client.ts";
import { until } from "../../support/until.ts";

vi.setConfig({ testTimeout: 60_000 });
const TARGET = "http://127.0.0.1:1";
const ENDED = [-30, -1] as const;
const AHEAD = [1, 30] as const;
const VALID = [-1, 30] as const;

type Pair = Awaited<ReturnType<ClientAuthority["certificate"]>>;

async function pairs() {
  const authority = await clientAuthority();
  return (days: readonly [number, number]): Promise<Pair> =>
    authority.certificate({ usage: "serverAuth", days });
}

/** The serial number of the certificate that a new connection gets. */
async function served({ port }: Sallyport): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const serial = socket.getPeerX509Certificate()?.serialNumber ?? "";
  socket.destroy();
  return serial;
}

const serialOf = ({ cert }: Pair): string => new X509Certificate(cert).serialNumber;

async function put(gate: Sallyport, name: string, { key, cert }: Pair): Promise<void> {
  await replaceFile(gate, `${name}.key`, key);
  await replaceFile(gate, `${name}.crt`, cert);
}

async function failedFor(gate: Sallyport, name: string): Promise<void> {
  const metric = async () => (await scrape(gate)).value("sallyport_config_last_reload_successful");
  await until(() => errors(gate).some(({ file }) => String(file).endsWith(name)));
  await until(async () => (await metric()) === 0);
  expect(errors(gate).at(-1)).toMatchObject({ message: expect.stringContaining("not valid now") });
}

const errors = (gate: Sallyport) =>
  gate
    .log()
    .filter(({ msg, level }) => msg === "the configuration was not reloaded" && level === "error");

async function repaired(gate: Sallyport): Promise<void> {
  await until(
    async () => (await scrape(gate)).value("sallyport_config_last_reload_successful") === 1,
  );
}

it.each([
  ["has ended", ENDED],
  ["is not valid yet", AHEAD],
])("the server's certificate is kept if the next one %s", async (_, days) => {
  const make = await pairs();
  const [first, wrong, next] = [await make(VALID), await make(days), await make(VALID)];
  await using gate = await startSallyport({
    withoutToken: true,
    insecure: true,
    target: TARGET,
    files: { "own.crt": first.cert, "own.key": first.key },
    config: { server: { tls: { certFile: "own.crt", keyFile: "own.key" } } },
  });
  await put(gate, "own", wrong);
  await failedFor(gate, "own.crt");
  expect(await served(gate)).toBe(serialOf(first));
  await put(gate, "own", next);
  await repaired(gate);
  expect(await served(gate)).toBe(serialOf(next));
});

it("a certificate that has ended itself is replaced by any other", async () => {
  const make = await pairs();
  const [first, next] = [await make(ENDED), await make(ENDED)];
  await using gate = await startSallyport({
    withoutToken: true,
    insecure: true,
    target: TARGET,
    files: { "own.crt": first.cert, "own.key": first.key },
    config: { server: { tls: { certFile: "own.crt", keyFile: "own.key" } } },
  });
  expect(await served(gate)).toBe(serialOf(first));
  await put(gate, "own", next);
  await until(async () => (await served(gate)) === serialOf(next));
});

it("authorities of clients are kept if none of the next ones is valid", async () => {
  const [before, ended] = [await clientAuthority(), await clientAuthority("ended", ENDED)];
  const alice = await before.certificate();
  await using gate = await startSallyport({
    withoutToken: true,
    insecure: true,
    clientCertificate: alice,
    target: TARGET,
    files: { "clients.crt": before.cert },
    config: {
      server: { tls: { clientCertificates: { mode: "required", caFile: "clients.crt" } } },
    },
  });
  const isLetIn = async (): Promise<boolean> => {
    const bytes = request(["GET /x HTTP/1.1", "Host: localhost", "Connection: close"]);
    const { raw } = await tlsExchange(gate, bytes, { ...alice, rejectUnauthorized: false });
    return raw.startsWith("HTTP/1.1 401");
  };
  await replaceFile(gate, "clients.crt", ended.cert);
  await failedFor(gate, "clients.crt");
  expect(await isLetIn()).toBe(true);
  await replaceFile(gate, "clients.crt", `${before.cert}\n${ended.cert}`);
  await repaired(gate);
  expect(await isLetIn()).toBe(true);
});

it("certificate and authorities for a backend are kept", async () => {
  const make = await pairs();
  const [authority, ended] = [await clientAuthority(), await clientAuthority("ended", ENDED)];
  const [first, wrong, next] = [await make(VALID), await make(ENDED), await make(VALID)];
  const tls = { caFile: "backend.crt", certFile: "own.crt", keyFile: "own.key" };
  await using gate = await startSallyport({
    withoutToken: true,
    target: "https://127.0.0.1:1",
    files: { "own.crt": first.cert, "own.key": first.key, "backend.crt": authority.cert },
    config: { upstreams: { app: { tls } } },
  });
  await put(gate, "own", wrong);
  await failedFor(gate, "own.crt");
  await put(gate, "own", next);
  await repaired(gate);
  await replaceFile(gate, "backend.crt", ended.cert);
  await failedFor(gate, "backend.crt");
});
