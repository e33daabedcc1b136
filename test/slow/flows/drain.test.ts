import { Agent, request as httpsRequest } from "node:https";
import type { IncomingMessage } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { openSocket } from "../../support/raw-client.ts";
import { startSallyport, type ConfigParts, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

function startDraining(
  delay: string,
  timeout: string,
  server: ConfigParts = {},
): Promise<Sallyport> {
  const drain = { delay, timeout };
  return startSallyport({ target: backend.url, config: { server: { ...server, drain } } });
}

/** Opens a response that continues until the backend ends it. */
async function openStream({ port, ca }: Sallyport): Promise<IncomingMessage> {
  const before = backend.listeners();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const where = { host: "127.0.0.1", port, ca, servername: "localhost", path: "/public/sse" };
  httpsRequest({ ...where, agent: false }, resolve)
    .on("error", reject)
    .end();
  const answer = await promise;
  await until(() => backend.listeners() === before + 1);
  return answer.setEncoding("utf8");
}

async function readiness({ adminPort }: Sallyport): Promise<number> {
  return (await ask({ port: adminPort }, "/readyz")).status;
}

describe("SIGTERM", () => {
  it("lets requests finish, accepts new ones during the delay, and exits with 0", async () => {
    await using gate = await startDraining("3s", "10s");
    const stream = await openStream(gate);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const kept = await ask(gate, "/public/before", { agent });
    expect(kept.headers.connection).not.toBe("close");

    gate.signal("SIGTERM");
    await until(async () => (await readiness(gate)) === 503);
    expect((await ask({ port: gate.adminPort }, "/livez")).status).toBe(200);
    expect((await scrape(gate)).value("sallyport_draining")).toBe(1);

    const onOldConnection = await ask(gate, "/public/during", { agent });
    const onNewConnection = await ask(gate, "/public/during");
    const ownResponse = await ask(gate, "/orders");
    for (const answer of [onOldConnection, onNewConnection, ownResponse]) {
      expect(answer.headers.connection).toBe("close");
    }
    expect([onOldConnection, onNewConnection].map(({ status }) => status)).toEqual([200, 200]);
    expect(ownResponse.status).toBe(401);

    await until(() =>
      ask(gate, "/public/after").then(
        () => false,
        () => true,
      ),
    );
    expect(gate.exited()).toBe(false);
    expect(await readiness(gate)).toBe(503);
    backend.emitEvent("the last");
    backend.emitEvent(undefined);
    expect(await stream.toArray()).toEqual(["data: the last\n\n"]);
    expect(stream.complete).toBe(true);
    expect(await gate.exit).toBe(0);
    agent.destroy();
  });

  it("cuts off requests after the timeout, and still exits with 0", async () => {
    await using gate = await startDraining("0s", "300ms");
    const stream = await openStream(gate);
    stream.on("error", () => undefined);
    expect(await gate.stop()).toBe(0);
    await until(() => stream.destroyed);
    expect(stream.complete).toBe(false);
  });

  it.each([1, 2])(
    "closes connections of %i workers that never sent anything",
    { timeout: 30_000 },
    async (workers) => {
      // A handshake may take as long as the header timeout.
      const timeouts = { header: "60s" };
      await using gate = await startDraining("0s", "300ms", { workers, timeouts });
      const silent = await Promise.all(
        Array.from({ length: 8 }, () => openSocket({ port: gate.port })),
      );
      for (const socket of silent) socket.resume();
      // Accepted after all the others.
      await ask(gate, "/public/x");
      expect(await gate.stop()).toBe(0);
      await until(() => silent.every(({ destroyed }) => destroyed));
    },
  );

  it("does not wait for idle connections", async () => {
    await using gate = await startDraining("0s", "60s");
    const agent = new Agent({ keepAlive: true });
    await ask(gate, "/public/x", { agent });
    expect(await gate.stop()).toBe(0);
    agent.destroy();
  });
});

describe("SIGINT", () => {
  it("does the same", async () => {
    await using gate = await startDraining("0s", "60s");
    gate.signal("SIGINT");
    expect(await gate.exit).toBe(0);
  });
});

describe("a second signal", () => {
  it.each([
    ["SIGTERM", "SIGTERM"],
    ["SIGINT", "SIGTERM"],
  ] as const)("ends the process at once: %s, %s", async (first, second) => {
    await using gate = await startDraining("60s", "60s");
    const stream = await openStream(gate);
    stream.on("error", () => undefined).resume();
    gate.signal(first);
    await until(async () => (await readiness(gate)) === 503);
    gate.signal(second);
    expect(await gate.exit).not.toBe(0);
    await until(() => stream.destroyed);
    expect(stream.complete).toBe(false);
  });
});
