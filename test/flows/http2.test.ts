/** HTTP/2 in front: what holds for HTTP/1.1 holds for it. */
import { connect } from "node:tls";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { startHoldingBackend } from "../support/holding-backend.ts";
import { useSallyport } from "../support/pair.ts";
import { ALICE, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

describe("HTTP/2", () => {
  const standing = useSallyport(undefined, { config: { server: { http2: true } } });

  it("is agreed on in the handshake", async () => {
    const { port, ca } = standing().gate;
    const where = { host: "127.0.0.1", port, ca, servername: "localhost" };
    const socket = connect({ ...where, ALPNProtocols: ["http/1.1", "h2"] });
    await once(socket, "secureConnect");
    expect(socket.alpnProtocol).toBe("h2");
    socket.destroy();
  });

  it("logs in, and asks with the token", async () => {
    const { gate, backend } = standing();
    await using client = await connectHttp2(gate);
    const login = await client.ask(
      {
        ":method": "POST",
        ":path": "/api/authenticate",
        "content-type": "application/json",
      },
      JSON.stringify(ALICE),
    );
    expect(login.status).toBe(200);
    const { token } = JSON.parse(login.body);
    expect((await client.ask({ ":path": "/secret" })).status).toBe(401);
    const answer = await client.ask({ ":path": "/secret", authorization: `Bearer ${token}` });
    expect(answer.status).toBe(200);
    expect(backend.seen()).toEqual(["GET /secret"]);
  });
});

it("a reload to http2: false ends connections behind what is under way, and offers HTTP/1.1 alone", async () => {
  await using backend = await startHoldingBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { http2: true } },
  });
  await using client = await connectHttp2(gate);
  const pending = client.ask({ ":path": "/public/hold/1" });
  await until(() => backend.held().length === 1);
  const told = once(client.session, "goaway");
  const closed = once(client.session, "close");
  await editConfiguration(gate, (config) => void (config.server["http2"] = false));
  const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
  expect((await told)[0]).toBe(0);
  backend.release("/public/hold/1");
  expect((await pending).body).toBe("/public/hold/1");
  await closed;
  const where = { host: "127.0.0.1", port: gate.port, ca: gate.ca, servername: "localhost" };
  const socket = connect({ ...where, ALPNProtocols: ["h2", "http/1.1"] });
  await once(socket, "secureConnect");
  expect(socket.alpnProtocol).toBe("http/1.1");
  socket.destroy();
});
