import { expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { editConfiguration } from "../support/edits.ts";
import { startSallyport } from "../support/sallyport.ts";
import { openWebSocket, startWebSocketBackend } from "../support/websocket.ts";

it("a WebSocket outlives changes to its upstream, and gets a close frame when the proxy stops", async () => {
  await using backend = await startWebSocketBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { workers: 2 } },
  });
  const bearer = { authorization: `Bearer ${gate.token}` };
  const sockets = [];
  for (const [round, connections] of [10, 11, 10].entries()) {
    sockets.push(await openWebSocket(gate, `/${round}`, bearer));
    await editConfiguration(gate, (config) => {
      Object.assign(config.upstreams["app"] ?? {}, { connections });
    });
    const { status } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect(status).toBe(200);
  }
  for (const socket of sockets) {
    socket.send("still there");
    expect(await socket.message()).toBe("still there");
  }
  const exit = gate.stop();
  expect(await Promise.all(sockets.map(({ closed }) => closed))).toEqual([1001, 1001, 1001]);
  expect(await exit).toBe(0);
}, 60_000);
