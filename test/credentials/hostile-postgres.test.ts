import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { HashingPool } from "../../src/credentials/hashing/hashing-pool.ts";
import { openUserStore } from "../../src/credentials/stores/store-kinds.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { testCertificates } from "../support/certificates.ts";
import { listeningPort } from "../support/listening-port.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { cheapHash, contentOf, STRANGER } from "./fixture.ts";

/** Encodes a protocol message: a letter, the length of the rest, the content. */
function message(letter: string, ...content: readonly (string | Buffer)[]): Buffer {
  const inside = Buffer.concat(content.map((each) => Buffer.from(each)));
  return Buffer.concat([Buffer.from(letter), number(4 + inside.length), inside]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

const short = (value: number): Buffer => number(value).subarray(2);
const authentication = (kind: number, ...rest: readonly (string | Buffer)[]): Buffer =>
  message("R", number(kind), ...rest);
const READY = message("Z", "I");
const BEGUN = Buffer.concat([message("C", "BEGIN\0"), message("C", "SET\0"), message("Z", "T")]);
const COMMITTED = Buffer.concat([message("C", "COMMIT\0"), READY]);
const LET_IN = Buffer.concat([authentication(0), READY]);
const TEXT = 25;
const column = (name: string, type: number): Buffer =>
  Buffer.concat([
    ...[Buffer.from(`${name}\0`), number(0), short(0), number(type)],
    ...[short(-1), number(-1), short(0)],
  ]);
const described = (...columns: readonly Buffer[]): Buffer =>
  Buffer.concat([message("1"), message("2"), message("T", short(columns.length), ...columns)]);
const row = (...values: readonly string[]): Buffer =>
  message(
    "D",
    short(values.length),
    ...values.flatMap((value) => [number(Buffer.byteLength(value)), value]),
  );
const OPENED = described(column("password_hash", TEXT));
const DONE = Buffer.concat([message("C", "SELECT 1\0"), READY]);

function endless(piece: Buffer) {
  return (socket: Socket): void => {
    const pieces = Buffer.concat(
      Array.from({ length: Math.ceil(65_536 / piece.length) }, () => piece),
    );
    const more = (): void => {
      while (!socket.destroyed && socket.write(pieces));
    };
    socket.on("drain", more);
    more();
  };
}

/** A row in which the column `disabled` has a type of its own. */
const typed = (type: number, value: string): Buffer =>
  Buffer.concat([
    described(column("password_hash", TEXT), column("disabled", type)),
    row("x", value),
    DONE,
  ]);
const REFUSED = message("E", "SFATAL\0", "VFATAL\0", "C28P01\0", "Mof-the-test apple\0", "\0");

type Answer = Buffer | ((socket: Socket) => void);

interface Script {
  readonly greeting: Answer;
  readonly begun?: Answer;
  readonly answer?: Answer;
}

/** What a server sends on connect, to the beginning of a transaction, and instead of the response to the query. */
const SERVERS: Record<string, Script> = {
  "a message of 2 GB": { greeting: Buffer.concat([Buffer.from("R"), number(2 ** 31 - 1)]) },
  "a message that goes on and on": { greeting: endless(Buffer.alloc(1_024, "R")) },
  "a negative length": { greeting: Buffer.concat([Buffer.from("R"), number(-5)]) },
  "a length of nothing": { greeting: Buffer.concat([Buffer.from("R"), number(0), LET_IN]) },
  "an authentication that nobody knows": { greeting: authentication(9_999) },
  Kerberos: { greeting: authentication(2) },
  "no mechanism of SASL": { greeting: authentication(10, "\0") },
  "mechanisms without end": {
    greeting: endless(authentication(10, "SCRAM-SHA-256\0".repeat(70), "\0")),
  },
  "a SCRAM of a billion rounds": {
    greeting: (socket) => {
      socket.write(authentication(10, "SCRAM-SHA-256\0\0"));
      socket.once("data", (said: Buffer) => {
        const nonce = /r=([^,]+)/.exec(said.toString("latin1"))?.[1] ?? "";
        socket.write(authentication(11, `r=${nonce}more,s=c2FsdA==,i=1000000000`));
      });
    },
  },
  "a SCRAM that ends before it began": { greeting: authentication(12, "v=AAAA") },
  "notices without end": {
    greeting: endless(message("N", "SNOTICE\0", "C00000\0", "Mmore\0", "\0")),
  },
  "parameters without end": {
    greeting: Buffer.concat([authentication(0)]),
    answer: Buffer.alloc(0),
  },
  "an error": { greeting: message("E", "SFATAL\0", "C53300\0", "Mof-the-test apple\0", "\0") },
  "an error without fields": { greeting: message("E") },
  "a letter that nobody knows": { greeting: message("\u0001", "noise") },
  "another protocol": { greeting: Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n") },
  noise: {
    greeting: Buffer.from(Array.from({ length: 5_000 }, (_, place) => (place * 7_919) % 256)),
  },
  nothing: { greeting: Buffer.alloc(0) },
  "rows without end": {
    greeting: LET_IN,
    answer: (socket) => {
      socket.write(OPENED);
      endless(row("x".repeat(1_000)))(socket);
    },
  },
  "a row of 100 MB": {
    greeting: LET_IN,
    answer: (socket) => {
      socket.write(Buffer.concat([OPENED, Buffer.from("D"), number(100 * 1024 ** 2)]));
      endless(Buffer.alloc(65_536, "x"))(socket);
    },
  },
  "a row that is longer than its message": {
    greeting: LET_IN,
    answer: Buffer.concat([OPENED, message("D", short(1), number(1_000_000), "x"), DONE]),
  },
  "a row of 30,000 columns that are not there": {
    greeting: LET_IN,
    answer: Buffer.concat([OPENED, message("D", short(30_000)), DONE]),
  },
  "rows that nobody described": {
    greeting: LET_IN,
    answer: Buffer.concat([message("1"), message("2"), row("x"), DONE]),
  },
  "three rows where two were asked for": {
    greeting: LET_IN,
    answer: Buffer.concat([OPENED, row("x"), row("y"), row("z"), DONE]),
  },
  "a time of 100,000 digits": { greeting: LET_IN, answer: typed(1114, "1".repeat(100_000)) },
  "bytes with half an escape": { greeting: LET_IN, answer: typed(17, "\\1") },
  "an error, and then lets it in": { greeting: Buffer.concat([REFUSED, LET_IN]) },
  "a fatal error when a transaction begins": {
    greeting: LET_IN,
    begun: Buffer.concat([REFUSED, READY]),
  },
  "a fatal error to the query": { greeting: LET_IN, answer: Buffer.concat([REFUSED, READY]) },
  "a wish to copy": { greeting: LET_IN, answer: message("G", "\0", short(0)) },
};

/** Starts a server that closes no connection. */
async function openHostile(
  { greeting, begun = BEGUN, answer = Buffer.alloc(0) }: Script,
  more: { readonly timeout?: number; readonly caFile?: string } = {},
) {
  const sockets = new Set<Socket>();
  const heard: Buffer[] = [];
  const say = (socket: Socket, what: Answer): void =>
    void (typeof what === "function" ? what(socket) : socket.write(what));
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let said = 0;
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("data", (data: Buffer) => {
      heard.push(data);
      said += 1;
      if (said === 1) say(socket, greeting);
      else if (data.includes("BEGIN")) say(socket, begun);
      else if (data.includes("COMMIT")) socket.write(COMMITTED);
      else if (data.includes("SELECT")) say(socket, answer);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const log = recordedLog();
  const verifier = new HashingPool({ concurrency: 1, queue: 10 });
  onTestFinished(() => verifier.close());
  const url = `postgres://sallyport:of-the-test@127.0.0.1:${listeningPort(server)}/shop`;
  const query = "SELECT password_hash FROM users WHERE name = $1";
  const store = await openUserStore(
    { kind: "postgres", url, query, tls: false, connections: 2, timeout: 300, ...more },
    { contentOf, log, verifier, clock: systemClock, queue: 10 },
  );
  onTestFinished(() => store.close());
  return { store, log, heard, sockets };
}

test.each(Object.entries(SERVERS))(
  "%s makes the store unavailable in time, and nothing else",
  async (_, script) => {
    const { greeting } = script;
    const { store, log, sockets } = await openHostile(script);
    const before = process.memoryUsage().rss;
    const began = performance.now();
    const attempts = [1, 2].map(() => store.verify("alice", "apple", STRANGER));
    for (const verdict of await Promise.all(attempts)) {
      expect(verdict).toEqual({ result: "unavailable" });
    }
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 ** 2);
    if (greeting !== LET_IN) expect(await store.examine?.(300)).toEqual(expect.any(String));
    expect(JSON.stringify(log.lines)).not.toMatch(/apple|of-the-test/);
    await store.close();
    await until(() => areClosed(sockets));
  },
);

/** Reports whether the store has closed its end of all connections. Only then does writing to them fail. */
function areClosed(sockets: ReadonlySet<Socket>): boolean {
  for (const socket of sockets) if (!socket.destroyed) socket.write(message("N", "\0"));
  return [...sockets].every((socket) => socket.destroyed);
}

test("without TLS no server gets the password in clear text", async () => {
  const { store, log, heard } = await openHostile({ greeting: authentication(3) });
  expect(await store.verify("alice", "apple", STRANGER)).toEqual({ result: "unavailable" });
  expect(await store.examine?.(300)).toBe(
    "the server asks for the password in clear text: use TLS",
  );
  expect(Buffer.concat(heard).toString("latin1")).not.toMatch(/of-the-test|apple/);
  expect(JSON.stringify(log.lines)).toContain("in clear text");
});

test("accepts a valid answer of the same form", async () => {
  const { store } = await openHostile({
    greeting: LET_IN,
    answer: Buffer.concat([OPENED, row(cheapHash("apple")), DONE]),
  });
  const user = { name: "alice", groups: [] };
  let verdict = await store.verify("alice", "apple", STRANGER);
  // On a busy machine, this may take longer than the store's timeout.
  for (let again = 0; again < 10 && verdict.result === "unavailable"; again += 1) {
    verdict = await store.verify("alice", "apple", STRANGER);
  }
  expect(verdict).toMatchObject({ result: "found", user });
});

test("neither a reload with other authorities nor one without the store waits for a query that hangs", async () => {
  const { ca } = await testCertificates();
  await using directory = await temporaryDirectory();
  const caFile = await directory.write("ca.crt", ca);
  const { store, heard } = await openHostile({ greeting: LET_IN }, { caFile, timeout: 2_000 });
  const attempt = store.verify("alice", "apple", STRANGER);
  await until(() => Buffer.concat(heard).includes("SELECT"));
  await directory.write("ca.crt", `${ca}${ca}`);
  await directory.write("ca.crt", `${ca}${ca}`);
  const began = performance.now();
  await store.reload(contentOf);
  await store.close();
  expect(performance.now() - began).toBeLessThan(500);
  expect(await attempt).toEqual({ result: "unavailable" });
});
