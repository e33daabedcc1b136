/** The version from a backend: how often it is fetched, and that a stop does not wait for it. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { openBackendVersion } from "../../src/upstream/version-from-backend.ts";
import type { UpstreamOptions } from "../../src/upstream/pool/upstreams.ts";
import { listeningPort } from "../support/listening-port.ts";
import { startRawBackend, type RawScript } from "../support/raw-backend.ts";
import { startTlsServer, TLS_NAME } from "../support/tls-server.ts";
import { until } from "../support/until.ts";
import { UPSTREAM_DEFAULTS } from "../support/upstream-defaults.ts";

const LONG_MS = 60_000;

async function start(script: RawScript) {
  const backend = await startRawBackend(script);
  onTestFinished(() => backend.close());
  return { backend, source: open({ targets: [backend.url] }) };
}

function open(
  upstream: Pick<UpstreamOptions, "targets" | "tls"> & Partial<UpstreamOptions>,
  responseMs = LONG_MS,
) {
  const source = openBackendVersion({
    upstream: {
      ...UPSTREAM_DEFAULTS,
      name: "app",
      connections: 1,
      queue: { length: 1, timeout: LONG_MS },
      timeouts: { connect: LONG_MS, response: responseMs, idle: LONG_MS },
      websocket: { handshake: LONG_MS, idle: LONG_MS },
      ...upstream,
    },
    path: "/about",
    field: "version",
    clock: systemClock,
  });
  onTestFinished(() => source.close());
  return source;
}

const responseWith = (text: string): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`;

it("is fetched once for concurrent requests, and once more after a failure", async () => {
  const { backend, source } = await start(() => "hang");
  const ask = (): Promise<string | undefined> =>
    source.current().catch((error: unknown) => (error instanceof GateError ? error.reason : ""));
  const failing = [ask(), ask(), ask()];
  await until(() => backend.requests().length === 1);
  backend.connections[0]?.socket.write(responseWith("no JSON"));
  expect(await Promise.all(failing)).toEqual(Array(3).fill("version_malformed"));

  const asking = [ask(), ask(), ask()];
  await until(() => backend.requests().length === 2);
  backend.connections.at(-1)?.socket.write(responseWith('{"version":"4.5.6"}'));
  expect(await Promise.all(asking)).toEqual(Array(3).fill("4.5.6"));
  expect(backend.requests().length).toBe(2);
});

it("does not delay a stop if the backend is silent", async () => {
  const { backend, source } = await start(() => "hang");
  const asked = source.current();
  await until(() => backend.requests().length === 1);
  const refused = expect(asked).rejects.toMatchObject({ reason: "version_unreachable" });
  await Promise.all([refused, source.close()]);
});

it.each(["http1", "http2", "auto"] as const)(
  "is unknown at once if the backend of %s accepts no connection, which is not tried again",
  async (protocol) => {
    let connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.destroy();
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const target = `https://127.0.0.1:${listeningPort(server)}`;
    const source = open({ targets: [target], protocol });
    await expect(source.current()).rejects.toMatchObject({ reason: "version_unreachable" });
    expect(connections).toBe(1);
  },
);

it("closes a connection whose handshake ends after the timeout", async () => {
  await using server = await startTlsServer();
  const port = Number(new URL(server.url).port);
  const arrived: Socket[] = [];
  const slow = createServer((socket) => arrived.push(socket)).listen(0, "127.0.0.1");
  onTestFinished(() => void slow.close());
  await once(slow, "listening");
  const target = `https://127.0.0.1:${listeningPort(slow)}`;
  const source = open({ targets: [target], tls: { ca: server.ca, serverName: TLS_NAME } }, 50);
  await expect(source.current()).rejects.toMatchObject({ reason: "version_unreachable" });
  const [client] = arrived;
  if (client === undefined) throw new Error("nobody has connected");
  const backend = connect(port, "127.0.0.1");
  const closed = once(client, "close");
  client.pipe(backend).pipe(client);
  client.on("error", () => backend.destroy());
  await closed;
});
