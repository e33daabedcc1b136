import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { HashingPool } from "../../src/credentials/hashing/hashing-pool.ts";
import { openUserStore } from "../../src/credentials/stores/store-kinds.ts";
import { systemClock } from "../../src/lib/clock.ts";
import {
  ber,
  berText as text,
  foundEntry,
  ldapResult as result,
  messageId as id,
  readRequest,
} from "../support/ldap-messages.ts";
import { listeningPort } from "../support/listening-port.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { contentOf, STRANGER } from "./fixture.ts";

/** Id of the first message that the library sends on a connection. */
const FIRST = 2;

/** Nested sequences, each with the correct length. */
function nested(tag: number, depth: number): Buffer {
  // Each length takes five bytes, so that it need not be known in advance.
  return Buffer.concat(
    Array.from({ length: depth }, (_, level) =>
      Buffer.concat([Buffer.from([tag]), fixedLength((depth - 1 - level) * 6)]),
    ),
  );
}

function fixedLength(length: number): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = 0x84;
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

/** Sends the same message repeatedly, without end. */
function endless(message: Buffer) {
  return (socket: Socket): void => {
    const pieces = Buffer.concat(
      Array.from({ length: Math.ceil(65_536 / message.length) }, () => message),
    );
    const more = (): void => {
      while (!socket.destroyed && socket.write(pieces));
    };
    socket.on("drain", more);
    more();
  };
}

function flood(socket: Socket): void {
  const piece = Buffer.alloc(64 * 1024, 0x30);
  socket.write(Buffer.from([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff]));
  const more = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", more);
  more();
}

const ENTRY = (attributes: Buffer): Buffer =>
  ber(0x30, id(FIRST), ber(0x64, text(0x04, "uid=alice"), attributes));
const DONE = ber(0x30, id(FIRST), result(0x65, 0));

const ANSWERS: Record<string, Buffer | ((socket: Socket) => void)> = {
  "sequences within sequences": Buffer.concat([ENTRY(nested(0x30, 100_000)), DONE]),
  "sequences within the message": ber(0x30, id(FIRST), nested(0x30, 150_000)),
  "sets within attributes": ENTRY(ber(0x30, ber(0x30, text(0x04, "uid"), nested(0x31, 100_000)))),
  "controls within controls": ber(0x30, id(FIRST), result(0x65, 0), nested(0xa0, 100_000)),
  "a message without end": flood,
  "a length of 2 GB": Buffer.from([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff, 0x02, 0x01, 0x01]),
  "a negative length": Buffer.from([0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 0x02, 0x01, 0x01]),
  "a length of nine bytes": Buffer.from([0x30, 0x89, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
  "a length without end": Buffer.from([0x30, 0x80, 0x02, 0x01, 0x01, 0, 0]),
  "an inner length beyond the outer": Buffer.from([0x30, 0x05, 0x02, 0x7f, 0x01, 0x61, 0x00]),
  "an unknown operation": ber(0x30, id(FIRST), ber(0x7f, Buffer.from([1]))),
  "the answer to another question": ber(0x30, id(99), result(0x65, 0)),
  "entries without end": (socket) => endless(ENTRY(ber(0x30)))(socket),
  "large entries without end": (socket) => {
    const values = ber(0x31, ...Array.from({ length: 1_000 }, () => text(0x04, "x".repeat(50))));
    endless(ENTRY(ber(0x30, ber(0x30, text(0x04, "uid"), values))))(socket);
  },
  "referrals without end": (socket) =>
    endless(ber(0x30, id(FIRST), ber(0x73, text(0x04, "ldap://127.0.0.1:1/dc=elsewhere"))))(socket),
  "a referral instead of a result": ber(0x30, id(FIRST), result(0x65, 10)),
  "intermediate answers without end": (socket) =>
    endless(ber(0x30, id(FIRST), ber(0x79, text(0x80, "1.2.3"))))(socket),
  "many answers to other questions": Buffer.concat(
    Array.from({ length: 20_000 }, () => ber(0x30, id(99), result(0x65, 0))),
  ),
  "a notice of disconnection": ber(0x30, id(0), result(0x78, 52)),
  "another protocol": Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"),
  noise: Buffer.from(Array.from({ length: 5_000 }, (_, place) => (place * 7919) % 256)),
  nothing: Buffer.alloc(0),
};

/** Starts a directory that answers each message with `answer`. */
async function openHostile(
  answer: (message: Buffer, socket: Socket) => void,
  { startTls = false } = {},
) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("data", (message: Buffer) => answer(message, socket));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const log = recordedLog();
  const verifier = new HashingPool({ concurrency: 1, queue: 10 });
  onTestFinished(() => verifier.close());
  const store = await openUserStore(
    {
      kind: "ldap",
      url: `ldap://127.0.0.1:${listeningPort(server)}`,
      startTls,
      search: { base: "dc=example", filter: "(uid={username})" },
      connections: 2,
      timeout: 200,
    },
    { contentOf, log, verifier, clock: systemClock, queue: 10 },
  );
  onTestFinished(() => store.close());
  return { store, log };
}

test.each(Object.entries(ANSWERS))(
  "%s makes the store unavailable in time, and nothing else",
  async (_, answer) => {
    const { store, log } = await openHostile((_message, socket) => {
      if (typeof answer === "function") answer(socket);
      else socket.write(answer);
    });
    const before = process.memoryUsage().rss;
    const began = performance.now();
    const attempts = [1, 2].map(() => store.verify("alice", "apple", STRANGER));
    for (const verdict of await Promise.all(attempts)) {
      expect(verdict).toEqual({ result: "unavailable" });
    }
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 ** 2);
    expect(JSON.stringify(log.lines)).not.toContain("apple");
  },
);

test("accepts a valid answer of the same form", async () => {
  const found = foundEntry(FIRST, "alice");
  const bound = ber(0x30, id(FIRST), result(0x61, 0));
  const { store } = await openHostile((message, socket) => {
    // The operation follows the message id: 0x60 is a bind.
    socket.write(message.includes(Buffer.from([0x02, 0x01, FIRST, 0x60])) ? bound : found);
  });
  const user = { name: "alice", groups: [] };
  let verdict = await store.verify("alice", "apple", STRANGER);
  // On a busy machine, this may take longer than the store's timeout.
  for (let again = 0; again < 10 && verdict.result === "unavailable"; again += 1) {
    verdict = await store.verify("alice", "apple", STRANGER);
  }
  expect(verdict).toEqual({ result: "found", user });
});

test.each([
  ["nothing", ber(0x61)],
  ["a result code without a byte", ber(0x61, ber(0x0a), text(0x04, ""), text(0x04, ""))],
  ["a result code beyond its end", Buffer.from([0x61, 0x02, 0x0a, 0x01])],
])("a bind that is answered by %s logs nobody in", async (_what, answer) => {
  const { store } = await openHostile((message, socket) => {
    const { id: of, operation } = readRequest(message);
    socket.write(operation === 0x60 ? ber(0x30, id(of), answer) : foundEntry(of, "alice"));
  });
  expect(await store.verify("alice", "apple", STRANGER)).toEqual({ result: "unavailable" });
});

test("what a directory says when it refuses StartTLS is not logged", async () => {
  const said = text(0x04, "\u001b[31mof-the-directory".repeat(10_000));
  const refusal = ber(0x78, ber(0x0a, Buffer.from([52])), text(0x04, ""), said);
  const { store, log } = await openHostile(
    (message, socket) => socket.write(ber(0x30, id(readRequest(message).id), refusal)),
    { startTls: true },
  );
  expect(await store.verify("alice", "apple", STRANGER)).toEqual({ result: "unavailable" });
  expect(JSON.stringify(log.lines)).toContain("(52)");
  expect(JSON.stringify(log.lines)).not.toContain("of-the-directory");
});
