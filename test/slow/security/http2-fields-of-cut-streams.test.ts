/**
 * Fields without an owner. A header section of a backend that is invalid, such as a 204 with a length, closes its stream. Node
 * keeps the fields that came before the fault with the stream, and counts their memory for the session. If both are collected
 * together and the session comes first, an assertion in `~Http2Session` aborts the process (Node 26.10). A backend that then
 * closes its connection ended Sallyport within a second or two of such answers. The session outlives its streams now.
 */
import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import * as h2 from "../../support/raw-http2-backend.ts";
import { startSallyport } from "../../support/sallyport.ts";

const OK = [":status", "200"] as const;
const FIELD = ["x-field", "v".repeat(100)] as const;
/** HTTP/2 allows no other value than `trailers` (RFC 9113 §8.2.2). */
const FORBIDDEN = ["te", "gzip"] as const;

const ANSWERS: [string, (stream: number) => Buffer][] = [
  ["a forbidden field", (stream) => h2.head(stream, [OK, FIELD, FORBIDDEN])],
  [
    "a forbidden trailer",
    (stream) =>
      Buffer.concat([h2.head(stream, [OK]), h2.head(stream, [FIELD, FORBIDDEN], h2.END_STREAM)]),
  ],
  [
    "a length of a 204",
    (stream) => h2.head(stream, [[":status", "204"], FIELD, ["content-length", "5"]]),
  ],
];

/** Enough for several collections of garbage. */
const [ROUNDS, REQUESTS] = [20, 100];

it.each(ANSWERS)("survives answers with %s on connections that close", async (_what, answer) => {
  await using backend = await h2.startRawHttp2Backend(({ type, stream }, socket) => {
    if (type === h2.HEADERS) socket.write(Buffer.concat([answer(stream), h2.goaway(stream, 0)]));
  });
  await using gate = await startSallyport({
    target: backend.url,
    withoutToken: true,
    config: {
      server: { tls: "off", workers: 1 },
      upstreams: { app: { protocol: "h2c" } },
    },
  });
  for (let round = 0; round < ROUNDS && !gate.exited(); round += 1) {
    const asked = Array.from({ length: REQUESTS }, () => ask(gate, "/public/x").catch(() => null));
    await Promise.all(asked);
  }
  expect((await ask(gate, "/nobody")).status).toBe(401);
  expect(gate.exited()).toBe(false);
});
