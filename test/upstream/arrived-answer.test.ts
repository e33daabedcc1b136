import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { Transfer } from "../../src/core/request/transfer.ts";
import { forwarderTo } from "../support/forwarder.ts";
import { listening } from "../support/listening.ts";
import { permitFor } from "../support/permit.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { until } from "../support/until.ts";

/** A response that its client does not read: its last write never completes. */
class UntakenResponse extends ServerResponse {
  override end(): this {
    return this;
  }
}

test.each([2, 100_000])(
  "a slot is released when the %d bytes of the response have arrived, although the client has not read them",
  async (bytes) => {
    await using backend = await startRawBackend(() => ({
      write: `HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n${"x".repeat(bytes)}`,
    }));
    const { upstream, forwarder } = forwarderTo(backend.url);
    const permit = permitFor({}, { upstream: "app" });
    let ended = 0;
    const forward = (request: IncomingMessage, response: ServerResponse): void => {
      void forwarder.forward(permit, request, response, new Transfer()).finally(() => (ended += 1));
    };
    const server = createServer({ ServerResponse: UntakenResponse }, forward);
    await using front = await listening(server);
    const left = new AbortController();
    const answers: Promise<unknown>[] = [];
    for (let asked = 1; asked <= 3; asked += 1) {
      // Referenced, because `fetch` closes the connection of a response that is garbage-collected.
      answers.push(fetch(front.url, { signal: left.signal }).catch(() => undefined));
      await until(() => backend.requests().length === asked);
    }
    expect(ended).toBe(0);
    left.abort();
    await Promise.all(answers);
    await until(() => ended === 3);
    await upstream.close();
  },
);
