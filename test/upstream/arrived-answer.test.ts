import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { Transfer } from "../../src/core/request/transfer.ts";
import { forwarderTo } from "../support/forwarder.ts";
import { listening } from "../support/listening.ts";
import { permitFor } from "../support/permit.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { until } from "../support/until.ts";

/** An answer that its client does not take: its last write never comes to an end. */
class UntakenResponse extends ServerResponse {
  override end(): this {
    return this;
  }
}

test.each([2, 100_000])(
  "a place is free when the %d bytes of the answer have arrived, though its client has not taken them",
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
      // Kept: `fetch` closes the connection of an answer that is collected as garbage.
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
