import { once } from "node:events";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { connectHttp2, type Http2Client } from "../support/http2-client.ts";
import { startPlainBackend } from "../support/plain-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

it.each([
  ["over TLS", {}],
  ["in the clear", { tls: "off" }],
])("an idle HTTP/2 connection that is evicted for another gets GOAWAY: %s", async (_name, tls) => {
  await using backend = await startPlainBackend((request, response) => {
    request.resume();
    response.end("ok");
  });
  const limits = { connections: 6, connectionsPerAddress: 6 };
  await using gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: { server: { http2: true, limits, ...tls } },
  });
  const peer = "tls" in tls ? { port: gate.port } : gate;
  const clients: Http2Client[] = [];
  let left = 0;
  const goaways: number[] = [];
  for (let n = 0; n < 6; n += 1) {
    const client = await connectHttp2(peer);
    client.session.on("goaway", (code: number) => goaways.push(code));
    client.session.on("close", () => (left += 1));
    expect((await client.ask({ ":path": "/public/x" })).status).toBe(200);
    clients.push(client);
  }
  // A client with another address, which has no connection yet.
  const newcomer = connect({ host: "127.0.0.1", port: gate.port, localAddress: "127.0.0.2" });
  await once(newcomer, "connect");
  await until(() => left === 1);
  expect(goaways).toEqual([0]);
  expect(newcomer.destroyed).toBe(false);
  newcomer.destroy();
  for (const client of clients) await client[Symbol.asyncDispose]();
});
