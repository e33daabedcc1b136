/** A hostile HTTP/2 backend can harm its own clients, but no others. */
import { expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import * as h2 from "../support/raw-http2-backend.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { startSallyport } from "../support/sallyport.ts";

type Attack = (stream: number, write: (bytes: Buffer) => void) => void;

const OK = [":status", "200"] as const;
const many = (count: number, each: (index: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, index) => each(index)));
const wide = Array.from({ length: 900 }, (_, index) => [`x-${index}`, "y".repeat(100)] as const);

/** The attacks before the head of an answer was sent. All result in a 502. */
const BEFORE: [string, Attack][] = [
  [
    "a header section of 100 KB",
    (stream, write) => {
      const block = h2.fieldBlock([OK, ...wide]);
      const parts = Array.from({ length: Math.ceil(block.length / 16_000) }, (_, index) =>
        block.subarray(index * 16_000, (index + 1) * 16_000),
      );
      write(
        Buffer.concat(
          parts.map((part, index) =>
            h2.frame(
              index === 0 ? h2.HEADERS : h2.CONTINUATION,
              index === parts.length - 1 ? h2.END_HEADERS : 0,
              stream,
              part,
            ),
          ),
        ),
      );
    },
  ],
  [
    "CONTINUATION without end",
    (stream, write) => {
      write(h2.frame(h2.HEADERS, 0, stream, h2.fieldBlock([OK])));
      write(many(20_000, () => h2.frame(h2.CONTINUATION, 0, stream, h2.fieldBlock([["x", "y"]]))));
    },
  ],
  [
    "a bomb of references to one field",
    (stream, write) => {
      // One field of 3000 bytes, which enters the table as number 62.
      const big = Buffer.concat([
        Buffer.from([0x40, 1, 0x78, 0x7f, 185, 22]),
        Buffer.alloc(3_000, "y"),
      ]);
      write(
        h2.frame(
          h2.HEADERS,
          h2.END_HEADERS,
          stream,
          Buffer.concat([h2.fieldBlock([OK]), big, Buffer.alloc(10_000, 0xbe)]),
        ),
      );
    },
  ],
  [
    "a push",
    (stream, write) => {
      const promise = Buffer.concat([
        Buffer.from([0, 0, 0, 2]),
        h2.fieldBlock([
          [":method", "GET"],
          [":scheme", "http"],
          [":authority", "a"],
          [":path", "/"],
        ]),
      ]);
      write(h2.frame(h2.PUSH_PROMISE, h2.END_HEADERS, stream, promise));
    },
  ],
  [
    "interim answers without end",
    (stream, write) =>
      write(
        many(5_000, () =>
          h2.head(stream, [
            [":status", "103"],
            ["link", "</a>"],
          ]),
        ),
      ),
  ],
  ["SETTINGS without end", (_stream, write) => write(many(5_000, () => h2.settings([4, 65_535])))],
  [
    "PING without end",
    (_stream, write) => write(many(5_000, () => h2.frame(h2.PING, 0, 0, Buffer.alloc(8)))),
  ],
  ["a reset", (stream, write) => write(h2.rst(stream, 2))],
  ["a refusal, and another", (stream, write) => write(h2.rst(stream, 7))],
  ["a goodbye, and another", (_stream, write) => write(h2.goaway(0, 0))],
  [
    "a field about the connection",
    (stream, write) => write(h2.head(stream, [OK, ["connection", "x"]], h2.END_STREAM)),
  ],
  [
    "a transfer coding",
    (stream, write) => write(h2.head(stream, [OK, ["transfer-encoding", "chunked"]])),
  ],
  [
    "a name in upper case",
    (stream, write) => write(h2.head(stream, [OK, ["X-A", "1"]], h2.END_STREAM)),
  ],
  ["no status", (stream, write) => write(h2.head(stream, [["x-a", "1"]], h2.END_STREAM))],
  ["a status of 101", (stream, write) => write(h2.head(stream, [[":status", "101"]]))],
  [
    "a status of 099",
    (stream, write) => write(h2.head(stream, [[":status", "099"]], h2.END_STREAM)),
  ],
  [
    "a status of 999",
    (stream, write) => write(h2.head(stream, [[":status", "999"]], h2.END_STREAM)),
  ],
  [
    "two lengths",
    (stream, write) =>
      write(h2.head(stream, [OK, ["content-length", "1"], ["content-length", "2"]])),
  ],
  [
    "a length without a body",
    (stream, write) => write(h2.head(stream, [OK, ["content-length", "5"]], h2.END_STREAM)),
  ],
  [
    "data without a head",
    (stream, write) => write(h2.frame(h2.DATA, h2.END_STREAM, stream, Buffer.from("x"))),
  ],
  ["no HTTP/2", (_stream, write) => write(Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"))],
];

/** The attacks after the head: the client gets an incomplete answer. */
const BEHIND: [string, Attack][] = [
  [
    "a body longer than its length",
    (stream, write) =>
      write(
        Buffer.concat([
          h2.head(stream, [OK, ["content-length", "2"]]),
          h2.frame(h2.DATA, h2.END_STREAM, stream, Buffer.from("four")),
        ]),
      ),
  ],
  [
    "a body shorter than its length",
    (stream, write) =>
      write(
        Buffer.concat([
          h2.head(stream, [OK, ["content-length", "9"]]),
          h2.frame(h2.DATA, h2.END_STREAM, stream, Buffer.from("four")),
        ]),
      ),
  ],
  [
    "a reset without an error",
    (stream, write) =>
      write(
        Buffer.concat([
          h2.head(stream, [OK]),
          h2.frame(h2.DATA, 0, stream, Buffer.from("four")),
          h2.rst(stream, 0),
        ]),
      ),
  ],
  [
    "trailers with a pseudo-header field",
    (stream, write) =>
      write(
        Buffer.concat([
          h2.head(stream, [OK]),
          h2.frame(h2.DATA, 0, stream, Buffer.from("four")),
          h2.head(stream, [[":status", "200"]], h2.END_STREAM),
        ]),
      ),
  ],
  [
    "trailers that do not end the stream",
    (stream, write) =>
      write(
        Buffer.concat([
          h2.head(stream, [OK]),
          h2.frame(h2.DATA, 0, stream, Buffer.from("four")),
          h2.head(stream, [["x-a", "1"]]),
        ]),
      ),
  ],
  [
    "trailers about the connection",
    (stream, write) =>
      write(
        Buffer.concat([
          h2.head(stream, [OK]),
          h2.frame(h2.DATA, 0, stream, Buffer.from("four")),
          h2.head(stream, [["connection", "x"]], h2.END_STREAM),
        ]),
      ),
  ],
  [
    "empty DATA without end",
    (stream, write) =>
      write(
        Buffer.concat([h2.head(stream, [OK]), many(50_000, () => h2.frame(h2.DATA, 0, stream))]),
      ),
  ],
];

async function attacked(attack: Attack) {
  const backend = await h2.startRawHttp2Backend((seen, socket) => {
    if (seen.type === h2.HEADERS) attack(seen.stream, (bytes) => void socket.write(bytes));
  });
  return backend;
}

const ROUTES = ["app", "other"].map((name) => ({
  name,
  path: `/${name}`,
  auth: "none",
  upstream: name,
}));

async function standing(bad: { readonly url: string }, other: { readonly url: string }) {
  return startSallyport({
    target: bad.url,
    config: {
      routes: ROUTES,
      upstreams: {
        app: { protocol: "h2c", timeouts: { response: "3s", idle: "3s" } },
        other: { protocol: "h2c", targets: [other.url] },
      },
    },
  });
}

test("a hostile backend harms only its own answers", { timeout: 120_000 }, async () => {
  let attack: Attack = () => undefined;
  await using backend = await attacked((stream, write) => attack(stream, write));
  await using other = await startHttp2Backend();
  await using gate = await standing(backend, other);
  const seen: [string, unknown][] = [];
  for (const [what, each] of [...BEFORE, ...BEHIND]) {
    attack = each;
    const answer = ask(gate, "/app/x").then(
      ({ status, body }) => (status === 200 ? `whole: ${body}` : status),
      () => "broken off",
    );
    const [badly, well] = await Promise.all([answer, ask(gate, "/other/y")]);
    expect(well.status, what).toBe(200);
    seen.push([what, badly]);
  }
  attack = (stream, write) => write(h2.answer(stream));
  expect(await ask(gate, "/app/x")).toMatchObject({ status: 200, body: "ok" });
  expect(seen).toEqual([
    ...BEFORE.map(([what]) => [what, 502]),
    ...BEHIND.map(([what]) => [what, "broken off"]),
  ]);
});

test("a field with a line break in its value is omitted", async () => {
  await using backend = await attacked((stream, write) =>
    write(h2.head(stream, [OK, ["x-a", "1\r\nx-b: 2"], ["x-c", "3"]], h2.END_STREAM)),
  );
  await using gate = await standing(backend, backend);
  const { status, headers } = await ask(gate, "/app/x");
  expect([status, headers["x-a"], headers["x-b"], headers["x-c"]]).toEqual([
    200,
    undefined,
    undefined,
    "3",
  ]);
});
