/** A client that disconnects before its request is forwarded, for example while its token is verified. */
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { Transfer } from "../../src/core/request/transfer.ts";
import { forwarderTo } from "../support/forwarder.ts";
import { listening } from "../support/listening.ts";
import { permitFor } from "../support/permit.ts";
import { startRawBackend } from "../support/raw-backend.ts";

test.each([0, 5, 100_000])("a request with a body of %d bytes is not sent", async (bodyLength) => {
  await using backend = await startRawBackend(() => ({ write: "HTTP/1.1 204 No Content\r\n\r\n" }));
  const { upstream, forwarder } = forwarderTo(backend.url);
  const permit = permitFor({ method: "POST", bodyLength }, { upstream: "app" });
  const transfer = new Transfer();
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    response.once("close", () => {
      resolve(forwarder.forward(permit, request, response, transfer));
    });
  });
  await using front = await listening(server);
  const client = connect(front.port, "127.0.0.1");
  await once(client, "connect");
  client.end(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${bodyLength}\r\n\r\n`);
  client.destroySoon();
  await ended;
  expect(transfer.abortReason).toBe("aborted");
  expect(upstream.load).toEqual({ inFlight: 0, waiting: 0, leftOut: 0, targets: 1 });
  expect(backend.requests()).toEqual([]);
  await upstream.close();
});
