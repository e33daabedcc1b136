/** An answer that Node refuses to write to the client, at the end of the turn or with its trailers, ends its own exchange. */
import { createServer, type IncomingMessage, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import { Transfer } from "../../src/core/request/transfer.ts";
import { forwarderTo } from "../support/forwarder.ts";
import { listening } from "../support/listening.ts";
import { permitFor } from "../support/permit.ts";
import { startRawBackend } from "../support/raw-backend.ts";

/** A response that refuses its head, as one of HTTP/2 does: nothing is sent then. */
class RefusingHead extends ServerResponse {
  constructor(request: IncomingMessage) {
    super(request);
    Object.defineProperty(this, "headersSent", { value: false });
  }
  override flushHeaders(): void {
    throw new TypeError("this head is refused");
  }
  override end(): this {
    throw new TypeError("this head is refused");
  }
}

/** A response that refuses its trailers. */
class RefusingTrailers extends ServerResponse {
  override addTrailers(): void {
    throw new TypeError("these trailers are refused");
  }
}

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const ANSWERS = {
  "a head": [RefusingHead, CHUNKED],
  "a head with its body": [RefusingHead, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"],
  trailers: [RefusingTrailers, `${CHUNKED}2\r\nok\r\n0\r\nX-Sum: 4\r\n\r\n`],
} as const;

test.each(Object.entries(ANSWERS))(
  "a client's protocol that refuses %s ends one exchange, and frees its slot",
  async (_name, [Response, write]) => {
    await using backend = await startRawBackend(() => ({ write }));
    const { upstream, forwarder } = forwarderTo(backend.url);
    const permit = permitFor({}, { upstream: "app" });
    const endings: unknown[] = [];
    const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const transfer = new Transfer();
      await forwarder
        .forward(permit, request, response, transfer)
        .then(() => endings.push(transfer.abortReason))
        .catch((error: unknown) => endings.push(error));
      response.destroy();
    };
    const server = createServer({ ServerResponse: Response }, (request, response) => {
      void forward(request, response);
    });
    await using front = await listening(server);
    // There is one slot: the second request needs that of the first.
    for (let asked = 0; asked < 2; asked += 1) {
      await fetch(front.url)
        .then((answer) => answer.text())
        .catch(() => undefined);
    }
    const reasons = endings.map((end) => (end instanceof GateError ? end.code : end));
    expect(reasons).toEqual(["invalid_response", "invalid_response"]);
    await upstream.close();
  },
);
