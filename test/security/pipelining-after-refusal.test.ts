/**
 * Data after a refusal. A request is refused because of its head, and the proxy continues to read: the bytes of its
 * body, or of a request that the client hid there, are executed as the next request; or the answers of a pipeline
 * change places, and a client gets the answer to another request. If the end of a refused message is certain (401,
 * 403, 405), the next request on the connection is served on its own, and the refused body is discarded; if it is
 * uncertain (400, 413, 417, 431, a refused upgrade, CONNECT), the connection ends, and nothing after it is ever
 * executed.
 */
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { allOf, attackMarked, targetsOf } from "../support/marked-attack.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { chunked, exchange, openSocket, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const H = "Host: localhost";
const next = (mark: string): string => request([`GET /public/${mark} HTTP/1.1`, H]);
const CHUNKED = "Transfer-Encoding: chunked";
const NEXT = next("next1");
const SMUGGLED = request(["GET /public/smuggled1 HTTP/1.1", H]);
const UPGRADE = ["Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA=="];

/** First requests that end the connection. */
const ENDING: readonly {
  readonly name: string;
  readonly status: number;
  readonly bytes: string;
}[] = [
  { name: "a path trick", status: 400, bytes: request(["GET /public/../x HTTP/1.1", H]) },
  { name: "no host", status: 400, bytes: request(["GET /public/x HTTP/1.1"]) },
  { name: "two hosts", status: 400, bytes: request(["GET /public/x HTTP/1.1", H, H]) },
  { name: "a fragment", status: 400, bytes: request(["GET /public/x#y HTTP/1.1", H]) },
  { name: "a foreign authority", status: 400, bytes: request(["GET http://b/x HTTP/1.1", H]) },
  {
    name: "a path trick with a length",
    status: 400,
    bytes: request(
      ["POST /public/../x HTTP/1.1", H, `Content-Length: ${SMUGGLED.length}`],
      SMUGGLED,
    ),
  },
  {
    name: "a path trick with chunks",
    status: 400,
    bytes: request(
      ["POST /public/../x HTTP/1.1", H, "Transfer-Encoding: chunked"],
      chunked(SMUGGLED),
    ),
  },
  {
    name: "two codings",
    status: 400,
    bytes: request(
      ["POST /public/x HTTP/1.1", H, "Transfer-Encoding: gzip, chunked"],
      chunked(SMUGGLED),
    ),
  },
  {
    name: "a length over the limit",
    status: 413,
    bytes: request(["POST /public/x HTTP/1.1", H, "Content-Length: 2000"], "x".repeat(2000)),
  },
  {
    name: "an expectation",
    status: 417,
    bytes: request(
      ["POST /public/x HTTP/1.1", H, "Expect: x", `Content-Length: ${SMUGGLED.length}`],
      SMUGGLED,
    ),
  },
  {
    name: "an expectation whose body never came",
    status: 417,
    bytes: request(["POST /public/x HTTP/1.1", H, "Expect: x", "Content-Length: 0"]),
  },
  {
    name: "too many fields",
    status: 431,
    bytes: request([
      "GET /public/x HTTP/1.1",
      H,
      ...Array.from({ length: 300 }, (_, i) => `a${i}: `),
    ]),
  },
  {
    name: "another upgrade",
    status: 400,
    bytes: request(["GET /public/x HTTP/1.1", H, ...UPGRADE, "Upgrade: h2c"]),
  },
  {
    name: "an upgrade with a body",
    status: 400,
    bytes: request(
      ["GET /public/x HTTP/1.1", H, ...UPGRADE, "Upgrade: websocket", "Content-Length: 4"],
      "body",
    ),
  },
  {
    name: "an upgrade without a token",
    status: 401,
    bytes: request(["GET /x HTTP/1.1", H, ...UPGRADE, "Upgrade: websocket"]),
  },
  { name: "CONNECT", status: 405, bytes: request(["CONNECT localhost:1 HTTP/1.1", H]) },
  { name: "no HTTP", status: 400, bytes: "hello\r\n\r\n" },
];

/** First requests with a certain end. */
const SERVING_ON: readonly {
  readonly name: string;
  readonly status: number;
  readonly lines: readonly string[];
}[] = [
  { name: "no token", status: 401, lines: ["POST /x HTTP/1.1", H] },
  { name: "a wrong token", status: 401, lines: ["POST /x HTTP/1.1", H, "Authorization: Bearer x"] },
  { name: "another method", status: 405, lines: ["PUT /api/authenticate HTTP/1.1", H] },
  { name: "TRACE", status: 405, lines: ["TRACE /public/x HTTP/1.1", H] },
  { name: "a login that is not JSON", status: 415, lines: ["POST /api/authenticate HTTP/1.1", H] },
  {
    name: "a login that is malformed",
    status: 400,
    lines: ["POST /api/authenticate HTTP/1.1", H, "Content-Type: application/json"],
  },
];

const LIMITED = { config: { server: { limits: { bodyBytes: "1KiB" } } } };

describe("Sallyport", () => {
  const standing = useSallyport(undefined, LIMITED);

  it.each(ENDING)("executes nothing after $name", async ({ status, bytes }) => {
    const { gate, backend } = standing();
    const { statuses, ended } = await attackMarked(gate, backend, "1", bytes + NEXT + NEXT, {
      responses: Infinity,
    });
    expect(statuses).toEqual([status]);
    expect(ended).toBe("closed");
    expect(backend.seen()).toEqual([]);
  });

  it.each(ENDING.map((row, index) => ({ ...row, mark: `before${index}` })))(
    "answers the request before $name, in order",
    async ({ bytes, status, mark }) => {
      const { gate, backend } = standing();
      const pipeline = next(mark) + bytes + next(mark);
      const { statuses, ended, ran } = await attackMarked(gate, backend, mark, pipeline, {
        responses: Infinity,
      });
      expect(ended).toBe("closed");
      // Closing the connection after a parser error or a switch of protocols may also cut off the previous answer.
      expect([[200, status], [200], [status], []]).toContainEqual(statuses);
      expect(ran().length).toBeLessThanOrEqual(1);
    },
  );

  it.each(SERVING_ON.flatMap((row) => [true, false].map((coded) => ({ ...row, coded }))))(
    "discards the body of $name and continues to serve (chunked: $coded)",
    async ({ lines, status, coded }) => {
      const { gate, backend } = standing();
      const framing = coded ? "Transfer-Encoding: chunked" : `Content-Length: ${SMUGGLED.length}`;
      const first = request([...lines, framing], coded ? chunked(SMUGGLED) : SMUGGLED);
      const { statuses } = await attackMarked(gate, backend, "1", first + NEXT, { responses: 2 });
      expect(statuses).toEqual([status, 200]);
      expect(backend.seen()).toEqual(["GET /public/next1"]);
    },
  );

  it("checks every request of a pipeline separately", async () => {
    const { gate, backend } = standing();
    const authorised = request(["GET /orders1 HTTP/1.1", H, `Authorization: Bearer ${gate.token}`]);
    const unauthorised = request(["GET /admin1 HTTP/1.1", H]);
    const pipeline = authorised + unauthorised + NEXT + unauthorised;
    const { statuses } = await attackMarked(gate, backend, "1", pipeline, { responses: 4 });
    expect(statuses).toEqual([200, 401, 200, 401]);
    expect(backend.seen().toSorted()).toEqual(["GET /orders1", "GET /public/next1"]);
  });

  it("gives forty pipelining clients their own answers, in order", async () => {
    const { gate, backend } = standing();
    const clients = Array.from({ length: 40 }, (_, i) => `p${String(i).padStart(2, "0")}`);
    await allOf(clients, async (mark) => {
      const last = request([`DELETE /public/a${mark} HTTP/1.1`, H]);
      const login = request([`GET /private/b${mark} HTTP/1.1`, H]);
      const post = request([`POST /public/c${mark} HTTP/1.1`, H, "Content-Length: 3"], mark);
      const after = await attackMarked(gate, backend, mark, post + login + post + last, {
        responses: 4,
      });
      expect(after.statuses).toEqual([200, 401, 200, 200]);
      expect(
        after
          .ran()
          .map(({ startLine, body }) => `${startLine} ${body.toString()}`)
          .toSorted(),
      ).toEqual([
        `DELETE /public/a${mark} HTTP/1.1 `,
        `POST /public/c${mark} HTTP/1.1 ${mark}`,
        `POST /public/c${mark} HTTP/1.1 ${mark}`,
      ]);
    });
  });
});

describe("a client that continues to send after its refusal", () => {
  const standing = useSallyport();

  it("can read it, since the connection is not closed with unread data", async () => {
    const { gate } = standing();
    const socket = await openSocket(gate);
    const errors: unknown[] = [];
    let received = "";
    socket.pause().on("error", (error) => errors.push(error));
    socket.on("data", (chunk) => (received += chunk));
    socket.pause();
    const refused = request(["GET /public/../x HTTP/1.1", H]);
    for (let sent = 0; sent < 20; sent += 1) {
      socket.write(sent === 0 ? refused : NEXT);
      await delay(5);
    }
    socket.resume();
    await until(() => socket.readableEnded || errors.length > 0);
    expect(errors).toEqual([]);
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 400"]);
  });
});

describe("Sallyport after all of this", () => {
  const standing = useSallyport(undefined, LIMITED);

  it("has handled every error, and holds no connection of pipelining clients", async () => {
    const { gate, backend } = standing();
    const ended = await allOf(ENDING, async ({ name, bytes }) => {
      const options = { responses: Infinity };
      return [name, (await attackMarked(gate, backend, "1", NEXT + bytes, options)).ended];
    });
    expect(ended.filter(([, how]) => how !== "closed")).toEqual([]);
    const { statuses } = await attackMarked(gate, backend, "1", NEXT);
    expect(statuses).toEqual([200]);
    expect(gate.exited()).toBe(false);
    expect(gate.log().filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("executes the data after an ambiguous request", async () => {
    const { gate, backend } = standing();
    const ran = await allOf(
      ENDING,
      async ({ bytes }) => {
        const options = { responses: 2, timeoutMs: 300 };
        const after = await attackMarked(gate, backend, "next1", bytes + NEXT, options);
        return targetsOf(after.ran());
      },
      1,
    );
    expect(ran.flat()).toContain("GET /public/next1");
  });
});

describe("a request that can never be completed, behind one that is answered later", () => {
  const standing = useSallyport(
    () => ({ write: request(["HTTP/1.1 200 OK", "Content-Length: 2"], "ok"), everyMs: 10 }),
    { withoutToken: true },
  );
  it("ends with an error after that answer", async () => {
    const unfinished = request(["PUT /public/x HTTP/1.1", H, CHUNKED], "1\r\nazz");
    const bytes = next("slow") + unfinished;
    const { responses, ended } = await exchange(standing().gate, bytes, { responses: Infinity });
    expect(responses.map(({ status }) => status)).toEqual([200, 400]);
    expect(ended).toBe("closed");
  });
});
