/** A request on a stale connection, before any of its body has arrived: it is sent again with the entire body. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { readMessages } from "../support/http-reader.ts";
import { listeningPort } from "../support/listening-port.ts";
import { logLine } from "../support/log-line.ts";
import { chunked, openSocket, request } from "../support/raw-client.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const IN_FLIGHT = 'sallyport_upstream_requests_in_flight{upstream="app"}';
const BYTES = 20_000;
const TEXT = "a".repeat(BYTES);

/** A TCP relay in front of a server. Only the first connection is relayed at once; the others wait for `letOn`. */
async function startRelay(target: string) {
  const sockets: Socket[] = [];
  const port = Number(new URL(target).port);
  const forward = (socket: Socket | undefined): void => {
    if (socket === undefined) return;
    const onward = connect(port, "127.0.0.1");
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.pipe(other);
      one.on("error", () => one.destroy()).on("close", () => other.destroy());
    }
  };
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    if (sockets.push(socket) === 1) forward(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `https://127.0.0.1:${listeningPort(server)}`,
    sockets,
    forward,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

it.each([
  ["with a length", `Content-Length: ${BYTES}`, TEXT],
  ["in chunks", "Transfer-Encoding: chunked", chunked(TEXT)],
])(
  "keeps a body %s that arrives while another connection is opened",
  async (_what, field, body) => {
    const { ca } = await testCertificates();
    await using backend = await startEchoBackend({ tls: {} });
    await using door = await startRelay(backend.url);
    await using gate = await startSallyport({
      target: door.url,
      files: { "ca.crt": ca },
      config: { upstreams: { app: { tls: { caFile: "ca.crt" }, timeouts: { connect: "60s" } } } },
    });
    expect((await ask(gate, "/public/first")).status).toBe(200);

    const client = await openSocket(gate);
    let received = "";
    client.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
    client.write(request(["PUT /public/late HTTP/1.1", "Host: localhost", field]));
    await until(async () => (await scrape(gate)).value(IN_FLIGHT) === 1);
    door.sockets[0]?.destroy();
    await until(() => door.sockets.length === 2);
    client.write(body);
    // This request arrives after the body, so its answer means that the body has been read.
    expect((await ask(gate, "/api/version", { token: gate.token })).status).toBe(200);
    door.forward(door.sockets[1]);

    const answers = () => readMessages("response", Buffer.from(received, "latin1")).messages;
    await until(() => answers().length === 1);
    expect(echoedBy({ body: answers()[0]?.body.toString() ?? "" })).toMatchObject({
      method: "PUT",
      url: "/public/late",
      bodyLength: BYTES,
    });
    expect(await logLine(gate, { path: "/public/late" })).toMatchObject({
      status: 200,
      bytes_in: BYTES,
    });
    client.destroy();
  },
);
