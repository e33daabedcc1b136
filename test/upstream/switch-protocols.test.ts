import { createServer, get, IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { Transfer } from "../../src/core/request/transfer.ts";
import { responseOn } from "../../src/lib/node-internals/node-sockets.ts";
import { originOf } from "../../src/upstream/pool/target-origin.ts";
import { switchProtocols } from "../../src/upstream/websocket/websocket.ts";
import type { UpgradeContext } from "../../src/upstream/http/dispatch.ts";
import { listening } from "../support/listening.ts";
import { permitFor } from "../support/permit.ts";

const NOTHING = Buffer.alloc(0);
const UPGRADE = { connection: "upgrade", upgrade: "websocket" };

it("releases the connection from the response, so that nothing else answers on it", async () => {
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
  await using server = await listening(createServer().on("upgrade", resolve));
  const client = get({ port: server.port, host: "127.0.0.1", headers: UPGRADE });
  onTestFinished(() => void client.on("error", () => undefined).destroy());
  const request = await promise;
  const response = new ServerResponse(request);
  response.assignSocket(request.socket);
  expect(responseOn(request.socket)).toBe(response);
  const backend = new Socket();
  const context = {
    request,
    response,
    stream: undefined,
    head: NOTHING,
    permit: permitFor({}, { upstream: "app" }),
    transfer: new Transfer(),
  } as unknown as UpgradeContext;
  const status = switchProtocols(context, {
    message: new IncomingMessage(backend),
    socket: backend,
    origin: originOf("http://127.0.0.1:1"),
  });
  const left = responseOn(request.socket);
  request.socket.destroy();
  expect(status).toBe(101);
  expect(left).not.toBe(response);
});
