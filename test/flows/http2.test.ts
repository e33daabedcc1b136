/** HTTP/2 clients get the same behaviour as HTTP/1.1 clients. */
import type { ClientHttp2Session } from "node:http2";
import { connect } from "node:tls";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { scrape } from "../support/scrape.ts";
import { startHoldingBackend } from "../support/holding-backend.ts";
import { useSallyport } from "../support/pair.ts";
import { ALICE, startSallyport } from "../support/sallyport.ts";
import { useSharedSallyport } from "../support/shared-sallyport.ts";
import { until } from "../support/until.ts";

describe("HTTP/2", () => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    config: { server: { http2: true } },
  });

  it("is negotiated in the handshake", async () => {
    const { port, ca } = standing().gate;
    const where = { host: "127.0.0.1", port, ca, servername: "localhost" };
    const socket = connect({ ...where, ALPNProtocols: ["http/1.1", "h2"] });
    await once(socket, "secureConnect");
    expect(socket.alpnProtocol).toBe("h2");
    socket.destroy();
  });

  it("accepts a login, and requests with its token", async () => {
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

describe("a body that is a single empty frame", { timeout: 20_000 }, () => {
  const part = useSharedSallyport({ withoutToken: true, config: { server: { http2: true } } });
  const POST = { ":method": "POST" };
  const route = { auth: "none" };

  const http1 = part(async (stack) => {
    const backend = stack.use(await startEchoBackend());
    return { backend, upstream: { targets: [backend.url] }, route };
  });
  it("reaches an HTTP/1.1 backend", async () => {
    const { backend, gate, path } = http1();
    await using client = await connectHttp2(gate);
    expect((await client.ask({ ...POST, ":path": path("/x") }, "")).status).toBe(200);
    expect(backend.requests.at(-1)).toMatchObject({ method: "POST", bodyLength: 0 });
  });

  const h2c = part(async (stack) => {
    const backend = stack.use(await startHttp2Backend());
    return { upstream: { protocol: "h2c", targets: [backend.url] }, route };
  });
  it("reaches an h2c backend", async () => {
    const { gate, path } = h2c();
    await using client = await connectHttp2(gate);
    const answer = await client.ask({ ...POST, ":path": path("/x") }, "");
    expect(answer).toMatchObject({ status: 200, body: `POST ${path("/x")}` });
  });

  it("is not a valid login", async () => {
    await using client = await connectHttp2(http1().gate);
    const login = { ":path": "/api/authenticate", "content-type": "application/json" };
    expect((await client.ask({ ...POST, ...login }, "")).status).toBe(400);
  });

  const holding = part(async (stack) => {
    const backend = stack.use(await startHoldingBackend());
    const limits = { connections: 1, queue: { timeout: "10s" } };
    return { backend, upstream: { targets: [backend.url], ...limits }, route };
  });
  it("is not missed while the request waits for a connection", async () => {
    const { backend, gate, name, path } = holding();
    await using client = await connectHttp2(gate);
    const first = client.ask({ ":path": path("/hold/1") });
    await until(() => backend.held().length === 1);
    const second = client.open({ ...POST, ":path": path("/x") }, { endStream: false });
    const answered = once(second, "response");
    const waiting = async (): Promise<number | undefined> =>
      (await scrape(gate)).value(`sallyport_upstream_queue_length{upstream="${name}"}`);
    await until(async () => (await waiting()) === 1);
    second.end();
    await pingOf(client.session);
    backend.release(path("/hold/1"));
    await first;
    const [head] = await answered;
    expect(head[":status"]).toBe(200);
  });
});

it("a reload to http2: false closes connections after their last stream, and offers only HTTP/1.1", async () => {
  await using backend = await startHoldingBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { http2: true } },
  });
  await using client = await connectHttp2(gate);
  const pending = client.ask({ ":path": "/public/hold/1" });
  await until(() => backend.held().length === 1);
  const goneAway = once(client.session, "goaway");
  const closed = once(client.session, "close");
  await editConfiguration(gate, (config) => void (config.server["http2"] = false));
  const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
  expect((await goneAway)[0]).toBe(0);
  backend.release("/public/hold/1");
  expect((await pending).body).toBe("/public/hold/1");
  await closed;
  const where = { host: "127.0.0.1", port: gate.port, ca: gate.ca, servername: "localhost" };
  const socket = connect({ ...where, ALPNProtocols: ["h2", "http/1.1"] });
  await once(socket, "secureConnect");
  expect(socket.alpnProtocol).toBe("http/1.1");
  socket.destroy();
});

/** Resolves when the peer has read everything sent so far. */
async function pingOf(session: ClientHttp2Session): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  session.ping(() => resolve());
  await promise;
}
