/**
 * Answers before the body. A backend answers as soon as it has read the head, and takes the following bytes for the
 * next request: it never reads bodies for this target (CL.0), or it found no length in the head that the proxy wrote
 * (0.CL, the desync endgame of 2025, with odd spellings of `Expect` as its key). If the rest of the body is sent
 * after the answer, it is a request that no one checked, and its answer goes to the next client. After a backend has
 * answered, not one more byte of the old request is sent on its connection; the client's remaining data is discarded
 * or its connection closed, and never read as a request. RFC 9110 §10.1.1: only `100-continue` is an expectation that
 * can be met, and HTTP/1.0 has none.
 */
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { listeningPort } from "../support/listening-port.ts";
import { allOf } from "../support/marked-attack.ts";
import { startNaiveProxy } from "../support/naive.ts";
import { use, useSallyport } from "../support/pair.ts";
import { chunked, exchange, openSocket, type Peer, request } from "../support/raw-client.ts";
import { startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

interface Bodyless extends AsyncDisposable {
  readonly url: string;
  /** The first line of everything that it took for a head. */
  readonly ran: readonly string[];
}

/** Answers every head at once, and never reads a body. */
async function startBodylessBackend(): Promise<Bodyless> {
  const ran: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let unread = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      const heads = (unread + chunk.toString("latin1")).split("\r\n\r\n");
      unread = heads.pop() ?? "";
      for (const head of heads) {
        ran.push(head.split("\r\n")[0] ?? "");
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${listeningPort(server)}`,
    ran,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

const SMUGGLED = request(["GET /admin HTTP/1.1", "Host: backend"]);
const NEXT = request(["GET /public/next HTTP/1.1", "Host: localhost"]);

/** The beginning of a body that is too long to be sent together with its head. */
const FIRST = "x".repeat(40 * 1024);

interface Late {
  readonly name: string;
  /** Head and the beginning of the body. */
  readonly head: string;
  /** Sent when the answer has arrived. */
  readonly rest: string;
}

const withLength = (method: string, more: readonly string[] = []): Late => {
  const length = `Content-Length: ${FIRST.length + SMUGGLED.length}`;
  const head = [`${method} /public/x HTTP/1.1`, "Host: localhost", length, ...more];
  return {
    name: [method, "with a length", ...more].join(" "),
    head: request(head, FIRST),
    rest: SMUGGLED,
  };
};
const withChunks = (method: string): Late => {
  const head = [`${method} /public/x HTTP/1.1`, "Host: localhost", "Transfer-Encoding: chunked"];
  const first = `${FIRST.length.toString(16)}\r\n${FIRST}\r\n`;
  return {
    name: `${method} with chunks`,
    head: request(head, first),
    rest: chunked(SMUGGLED),
  };
};
const LATE: readonly Late[] = [
  ...["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"].map((method) => withLength(method)),
  ...["GET", "POST", "DELETE", "OPTIONS"].map(withChunks),
  withLength("POST", ["Expect: 100-continue"]),
];

/** Sends the head, waits for a final answer, sends the rest and one more request, and waits a moment for the outcome. */
async function answeredEarly(peer: Peer, head: string, rest: string): Promise<void> {
  const socket = await openSocket(peer);
  let received = "";
  socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
  let closed = false;
  socket.on("close", () => (closed = true));
  socket.write(head);
  await until(() => closed || /HTTP\/1\.1 [2-5]/.test(received));
  if (!closed) socket.write(rest + NEXT);
  // The connection is closed, or the rest has been read away and the next request is answered.
  await until(() => closed || (received.match(/HTTP\/1\.1 [2-5]/g) ?? []).length > 1);
  socket.destroy();
}

describe("Sallyport with a backend that never reads bodies", () => {
  const standing = use(startBodylessBackend, (target) =>
    startSallyport({ withoutToken: true, target }),
  );

  it.each(LATE)("never sends $name after the answer", async ({ head, rest }) => {
    const { gate, backend } = standing();
    const before = backend.ran.length;
    await answeredEarly(gate, head, rest);
    await exchange(gate, NEXT);
    const ran = backend.ran.slice(before);
    expect(ran.filter((line) => !/^[A-Z]+ \/public\/(?:x|next) HTTP\/1\.1$/.test(line))).toEqual(
      [],
    );
    expect(ran.filter((line) => line.includes("/public/x"))).toHaveLength(1);
  });

  it("gives the next client its own answer", async () => {
    const { gate } = standing();
    const others = LATE.map(({ head, rest }) => answeredEarly(gate, head, rest));
    const answers = await Promise.all(LATE.map(() => exchange(gate, NEXT)));
    expect(answers.map(({ last }) => [last.status, last.body])).toEqual(
      LATE.map(() => [200, "ok"]),
    );
    await Promise.all(others);
  });
});

const UNMEETABLE: readonly (readonly string[])[] = [
  ...["200-ok", "", "100-continue, x", "x, 100-continue", "x 100-continue", "y 100-continue z"],
  ...["100-continue;q=1", "100-continue=x", "x-100-continue", "100-continue-x", "(100-continue)"],
]
  .map((one) => [one])
  .concat([
    ["y", "100-continue"],
    ["100-continue", "y"],
  ]);

describe("Sallyport with an expectation", () => {
  const standing = useSallyport(undefined, { withoutToken: true });
  const post = (expectations: readonly string[], version = "1.1"): string =>
    request(
      [
        `POST /public/x HTTP/${version}`,
        "Host: localhost",
        ...expectations.map((expectation) => `Expect: ${expectation}`),
        "Content-Length: 5",
      ],
      "hello",
    );

  it("meets only the expectation 100-continue", async () => {
    const { gate, backend } = standing();
    const wrong = await allOf(UNMEETABLE, async (expectations) => {
      const options = { responses: Infinity, timeoutMs: 500 };
      const { responses, ended } = await exchange(gate, post(expectations) + NEXT, options);
      const statuses = responses.map(({ status }) => status).join();
      return statuses === "417" && ended === "closed" ? [] : [{ expectations, statuses, ended }];
    });
    expect(wrong.flat()).toEqual([]);
    expect(backend.seen()).toEqual([]);
  });

  it.each([["100-continue"], ["x"], [""]])(
    "sends no interim answer to HTTP/1.0 for %j (RFC 9110 §15.2)",
    async (expectation) => {
      const { gate } = standing();
      const { responses } = await exchange(gate, post([expectation], "1.0"), {
        responses: Infinity,
      });
      expect(responses.map(({ status }) => status)).not.toContain(100);
      expect(responses).toHaveLength(1);
    },
  );

  it("does not pass on an expectation: the backend gets head and body together", async () => {
    const { gate, backend } = standing();
    await exchange(gate, post(["100-continue"]));
    const [seen] = backend.requests();
    expect(seen?.headers.filter(([name]) => /^expect/i.test(name))).toEqual([]);
    expect(seen?.body.toString()).toBe("hello");
  });
});

describe("a naive proxy with a backend that never reads bodies", () => {
  const standing = use(startBodylessBackend, (target) => startNaiveProxy(target));

  it("sends the body after the answer, where it is executed", async () => {
    const { gate, backend } = standing();
    const { head, rest } = withLength("POST");
    const socket = await openSocket(gate);
    socket.once("data", () => socket.write(rest)).write(head);
    await until(() => backend.ran.some((line) => line.includes("/admin")));
    socket.destroy();
  });
});
