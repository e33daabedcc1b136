/** One HTTP/2 connection full of busy streams next to an HTTP/1.1 client: the streams share what one client gets. */
import { once } from "node:events";
import { Agent } from "node:http";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startPlainBackend } from "../../support/plain-backend.ts";
import { startSallyport } from "../../support/sallyport.ts";

const STREAMS = 100;
const REQUESTS = 60;
/** Next to the streams it takes about 50 ms on two busy cores. */
const MOST_MS = 500;

it("leaves time for an HTTP/1.1 client, and makes progress itself", async () => {
  await using backend = await startPlainBackend((request, response) => {
    request.resume();
    response.end("ok");
  });
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { http2: true, tls: "off" } },
  });
  const session = connect(`http://127.0.0.1:${gate.port}`, {
    createConnection: () =>
      connectTcp({ host: "127.0.0.1", port: gate.port, localAddress: "127.0.0.2" }),
  });
  session.on("error", () => undefined);
  await once(session, "connect");
  let answered = 0;
  let busy = true;
  const askOn = (): void => {
    const stream = session.request({ ":path": "/public/busy" });
    stream.on("error", () => undefined).resume();
    stream.on("end", () => {
      answered += 1;
      if (busy && !session.destroyed) askOn();
    });
  };
  for (let n = 0; n < STREAMS; n += 1) askOn();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const took: number[] = [];
  for (let n = 0; n < REQUESTS; n += 1) {
    const began = performance.now();
    const { status } = await ask({ port: gate.port }, "/public/light", { agent });
    expect(status).toBe(200);
    took.push(performance.now() - began);
  }
  busy = false;
  expect(took.toSorted((one, other) => one - other)[REQUESTS / 2]).toBeLessThan(MOST_MS);
  expect(answered).toBeGreaterThan(REQUESTS);
  agent.destroy();
  session.destroy();
}, 60_000);
