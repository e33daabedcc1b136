import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { listeningPort } from "../support/listening-port.ts";
import { use } from "../support/pair.ts";
import { exchange, openSocket, request } from "../support/raw-client.ts";
import { startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const UPLOAD = 300 * 1024;
const MIB = 1024 * 1024;

interface HastyBackend extends AsyncDisposable {
  readonly url: string;
  readonly answered: () => number;
}

/** Answers as soon as it has the header section. If a body follows, it stops reading from that connection. */
async function startHastyBackend(): Promise<HastyBackend> {
  const sockets = new Set<Socket>();
  let answered = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    let received = "";
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      received += chunk.toString("latin1");
      if (!received.includes("\r\n\r\n")) return;
      const hasBody = /^(?:content-length: [1-9]|transfer-encoding:)/im.test(received);
      const status = received.includes(" /public/denied ") ? "401 Unauthorized" : "200 OK";
      received = "";
      answered += 1;
      const head = [`HTTP/1.1 ${status}`, "X-Backend: 1", "Content-Length: 5"];
      if (hasBody) {
        head.push("Connection: close");
        socket.pause();
      }
      socket.write(request(head, "early"));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${listeningPort(server)}`,
    answered: () => answered,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

const standing = use(startHastyBackend, (target) =>
  startSallyport({
    withoutToken: true,
    target,
    config: { server: { limits: { bodyBytes: "unlimited" } } },
  }),
);

const upload = (path: string, bytes: number): string =>
  request(
    [`POST ${path} HTTP/1.1`, "Host: localhost", `Content-Length: ${bytes}`],
    "x".repeat(bytes),
  );
const chunkedUpload = (path: string): string =>
  request(
    [`POST ${path} HTTP/1.1`, "Host: localhost", "Transfer-Encoding: chunked"],
    `${UPLOAD.toString(16)}\r\n${"x".repeat(UPLOAD)}\r\n0\r\n\r\n`,
  );
const NEXT = request(["GET /public/next HTTP/1.1", "Host: localhost"]);

describe("a backend that answers before it has read the upload", () => {
  it.each([
    ["with a length", upload("/public/up", UPLOAD), 200],
    ["in chunks", chunkedUpload("/public/up"), 200],
    ["that is denied", upload("/public/denied", UPLOAD), 401],
  ])(
    "%s, gets its response through, and the connection stays usable",
    async (_name, bytes, status) => {
      const { gate, backend } = standing();
      const before = backend.answered();
      const { responses } = await exchange(gate, bytes + NEXT, { responses: 2 });
      expect(responses.map(({ status }) => status)).toEqual([status, 200]);
      expect(responses.map(({ body }) => body)).toEqual(["early", "early"]);
      expect(responses.map((answer) => answer.header("x-backend"))).toEqual(["1", "1"]);
      expect(backend.answered()).toBe(before + 2);
    },
  );
});

describe("a refusal by Sallyport before the upload was read", () => {
  it.each([
    ["with a length", upload("/orders", UPLOAD)],
    ["in chunks", chunkedUpload("/orders")],
  ])("%s, reaches the client, and the connection stays usable", async (_name, bytes) => {
    const { gate } = standing();
    const { responses } = await exchange(gate, bytes + NEXT, { responses: 2 });
    expect(responses.map(({ status }) => status)).toEqual([401, 200]);
    expect(responses[0]?.header("x-backend")).toBeUndefined();
    expect(responses[1]?.header("x-backend")).toBe("1");
  });
});

describe("a large upload that is answered early", () => {
  it.each([
    ["ours", "/orders", 401, /"success":false\}$/],
    ["the backend's", "/public/up", 200, /early$/],
  ])(
    "ends with its connection, long before all of it was sent: %s",
    async (_n, path, status, end) => {
      const { gate } = standing();
      const whole = 50 * MIB;
      const socket = await openSocket(gate);
      let received = "";
      socket.setEncoding("latin1").on("data", (text: string) => (received += text));
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      const block = Buffer.alloc(64 * 1024, "x");
      socket.write(request([`POST ${path} HTTP/1.1`, "Host: a", `Content-Length: ${whole}`]));
      socket.write(block);
      await until(() => end.test(received));
      let sent = block.length;
      while (sent < whole && !socket.destroyed) {
        sent += block.length;
        if (socket.write(block)) continue;
        const drained = new Promise<void>((resolve) => socket.once("drain", () => resolve()));
        await Promise.race([drained, closed]);
      }
      await closed;
      expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
      // What was read, plus the socket buffers of both sides.
      expect(sent).toBeLessThan(25 * MIB);
      expect(gate.exited()).toBe(false);
    },
  );
});
