/** The buffers of data from a backend are freed, even if it is not part of a body. */
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTcpServer, type Socket } from "node:net";
import { PerformanceObserver, type PerformanceEntry } from "node:perf_hooks";
import { expect, it, onTestFinished } from "vitest";
import { Transfer } from "../../src/core/request/transfer.ts";
import { forwarderTo } from "../support/forwarder.ts";
import { listening } from "../support/listening.ts";
import { permitFor } from "../support/permit.ts";
import { until } from "../support/until.ts";

const PIECE = Buffer.from(`1;${"e".repeat(10_000)}\r\nx\r\n`);
const PIECES = 3_000;
/** Node's `NODE_PERFORMANCE_GC_FLAGS_FORCED`. */
const FORCED = 4;

/** Answers with 3,000 bytes in 30 MB of chunk extensions. */
function sendExtensions(socket: Socket): void {
  let left = PIECES;
  const more = (): void => {
    for (; left > 0; left -= 1) {
      if (!socket.write(PIECE)) {
        left -= 1;
        socket.once("drain", more);
        return;
      }
    }
    socket.end("0\r\n\r\n");
  };
  socket
    .on("error", () => undefined)
    .once("data", () => {
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
      more();
    });
}

it("collects the young space every few megabytes of chunk extensions", async () => {
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (isForced(entry)) collections += 1;
  });
  observer.observe({ entryTypes: ["gc"] });
  onTestFinished(() => observer.disconnect());
  await using backend = await listening(createTcpServer(sendExtensions));
  const { upstream, forwarder } = forwarderTo(`http://127.0.0.1:${backend.port}`);
  onTestFinished(() => upstream.close());
  const permit = permitFor({}, { upstream: "app" });
  const forward = (request: IncomingMessage, response: ServerResponse): void => {
    void forwarder.forward(permit, request, response, new Transfer());
  };
  await using front = await listening(createServer(forward));
  let received = 0;
  get({ port: front.port, host: "127.0.0.1" }, (response) => {
    response.on("data", (chunk: Buffer) => (received += chunk.length));
  });
  await until(() => received === PIECES, 20_000);
  await until(() => collections >= 5);
  expect(received).toBe(PIECES);
});

function isForced(entry: PerformanceEntry): boolean {
  const detail: unknown = "detail" in entry ? entry.detail : undefined;
  return (
    typeof detail === "object" && detail !== null && "flags" in detail && detail.flags === FORCED
  );
}
