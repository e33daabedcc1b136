/**
 * Streams that Sallyport gives up while their answer waits for the client's window. Node's `close(NO_ERROR)` waits for the
 * answer before it resets the stream; when the stream is destroyed first, nghttp2 keeps it, and as soon as the window opens it
 * writes empty DATA frames without end: the event loop stands still, and memory grows until the process aborts (Node 26.10).
 */
import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import {
  FrameClient,
  END_HEADERS,
  END_STREAM,
  FRAME,
  frame,
  headerBlock,
} from "../../support/http2-frames.ts";
import { ask } from "../../support/ask.ts";
import { settings } from "../../support/raw-http2-backend.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

/** SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113 §6.5.2). */
const WINDOW = 4;
/** How long the rest of a body is read and dropped, and a while more, in milliseconds. */
const GIVEN_UP_MS = 1_300;

const POST = [
  [":method", "POST"],
  [":scheme", "http"],
  [":authority", "localhost"],
  [":path", "/x"],
] as const;

test("a client that ends its body late, and then takes the answer, does not stop the event loop", async () => {
  await using gate = await startSallyport({
    target: "http://127.0.0.1:9",
    withoutToken: true,
    config: { server: { tls: "off", http2: true } },
  });
  await using client = await FrameClient.connect(gate);
  client.send(settings([WINDOW, 0]), frame(FRAME.headers, END_HEADERS, 1, headerBlock(POST)));
  await until(() => client.of(FRAME.headers).length > 0);
  await delay(GIVEN_UP_MS);
  client.send(frame(FRAME.data, END_STREAM, 1, "x"));
  // So that it arrives in another read.
  await delay(100);
  client.send(settings([WINDOW, 65_535]));
  const alive = await Promise.race([
    ask({ port: gate.adminPort }, "/livez").then(({ status }) => status),
    delay(4_000, "the event loop stands still"),
  ]);
  expect(alive).toBe(200);
  await until(() => client.of(FRAME.data).length > 0);
  expect(String(client.of(FRAME.data)[0]?.payload)).toContain("authentication is required");
});
