import { createHash } from "node:crypto";
import { once } from "node:events";
import type { ClientRequest, IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { json, text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { startPlainBackend } from "../../support/plain-backend.ts";
import type { Peer } from "../../support/raw-client.ts";
import { peakResidentBytes } from "../../support/resident-memory.ts";
import { startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const MIB = 1024 * 1024;
const HUNDRED_MB = 100 * 1000 * 1000;
/** Measured: 127 MiB at most. A proxy that buffered bodies would use 95 plus 100 MiB, and garbage on top. */
const MAX_MEMORY = 190 * MIB;
/** The most that fits between two stalled ends: the buffers of four sockets, with some margin. */
const MAX_BUFFERED = 40 * MIB;

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startUnlimited(backend.url);
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

function startUnlimited(target: string): Promise<Sallyport> {
  return startSallyport({
    target,
    config: { server: { limits: { bodyBytes: "unlimited" } } },
  });
}

function open({ port, ca }: Peer, path: string, method = "GET", length?: number): ClientRequest {
  const headers = length === undefined ? {} : { "content-length": String(length) };
  const where = { host: "127.0.0.1", port, servername: "localhost", agent: false };
  return httpsRequest({ ...where, ...(ca === undefined ? {} : { ca }), path, method, headers });
}

async function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  sent.once("response", resolve).once("error", reject);
  return promise;
}

/** Creates a body of random blocks. The checksum is complete once the body has been read. */
function randomBody(bytes: number): { body: Readable; checksum: () => string } {
  const block = Buffer.from(crypto.getRandomValues(new Uint8Array(64 * 1024)));
  const hash = createHash("sha256");
  const blocks = function* (): Generator<Buffer> {
    for (let left = bytes; left > 0; left -= block.length) {
      const chunk = block.subarray(0, left);
      hash.update(chunk);
      yield chunk;
    }
  };
  return { body: Readable.from(blocks()), checksum: () => hash.digest("hex") };
}

describe("100 MB", () => {
  it.each([
    ["with a length", HUNDRED_MB],
    ["in chunks", undefined],
  ])("reach the backend unchanged without being buffered, %s", async (_name, length) => {
    const { body, checksum } = randomBody(HUNDRED_MB);
    const sent = open(gate, "/public/up", "POST", length);
    const answer = answerTo(sent);
    await pipeline(body, sent);
    const echoed: unknown = await json(await answer);
    expect(echoed).toMatchObject({ bodyLength: HUNDRED_MB, bodySha256: checksum() });
    expect(await peakResidentBytes(gate)).toBeLessThan(MAX_MEMORY);
  });

  it.each([true, false])("reach the client unchanged (with a length: %s)", async (withLength) => {
    let checksum = "";
    await using source = await startPlainBackend((_request, response) => {
      const { body, checksum: whole } = randomBody(HUNDRED_MB);
      if (withLength) response.setHeader("content-length", HUNDRED_MB);
      body.once("end", () => (checksum = whole()));
      body.pipe(response);
    });
    await using through = await startUnlimited(source.url);
    const answer = await answerTo(open(through, "/public/down").end());
    expect(answer.headers["content-length"]).toBe(withLength ? String(HUNDRED_MB) : undefined);
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of answer) {
      const block: Buffer = chunk;
      hash.update(block);
      bytes += block.length;
    }
    expect(bytes).toBe(HUNDRED_MB);
    expect(hash.digest("hex")).toBe(checksum);
    expect(await peakResidentBytes(through)).toBeLessThan(MAX_MEMORY);
  });
});

/** Waits until a number has not changed for a while. @returns it. */
async function settled(read: () => number): Promise<number> {
  let last = -1;
  let since = performance.now();
  await until(() => {
    if (read() !== last) {
      last = read();
      since = performance.now();
    }
    return last > 0 && performance.now() - since > 400;
  });
  return last;
}

describe("back-pressure", () => {
  it("reaches the backend when the client does not read", async () => {
    const block = Buffer.alloc(64 * 1024, "x");
    let written = 0;
    await using source = await startPlainBackend((_request, response) => {
      const write = (): void => {
        do written += block.length;
        while (response.write(block));
      };
      response.on("drain", write);
      write();
    });
    await using through = await startUnlimited(source.url);
    const answer = await answerTo(open(through, "/public/down").end());
    answer.pause();
    expect(await settled(() => written)).toBeLessThan(MAX_BUFFERED);
    expect(await peakResidentBytes(through)).toBeLessThan(MAX_MEMORY);
    const held = written;
    answer.resume();
    await until(() => written > held + MAX_BUFFERED);
    answer.destroy();
  });

  it("reaches the client when the backend does not read", async () => {
    let requests: IncomingMessage[] = [];
    await using sink = await startPlainBackend((request, response) => {
      requests = [...requests, request];
      request.once("end", () => response.end());
    });
    await using through = await startUnlimited(sink.url);
    const sent = open(through, "/public/up", "POST", HUNDRED_MB);
    const answer = answerTo(sent);
    const { body } = randomBody(HUNDRED_MB);
    const sending = pipeline(body, sent);
    const both = Promise.all([answer, sending]);
    both.catch(() => undefined);
    await until(() => requests.length === 1);
    expect(await settled(() => sent.socket?.bytesWritten ?? 0)).toBeLessThan(MAX_BUFFERED);
    expect(await peakResidentBytes(through)).toBeLessThan(MAX_MEMORY);
    requests[0]?.resume();
    const [{ statusCode }] = await both;
    expect(statusCode).toBe(200);
  });
});

describe("Server-Sent Events", () => {
  it("arrive one by one as they are sent", async () => {
    const answer = await answerTo(open(gate, "/public/sse").end());
    expect(answer.headers["content-type"]).toBe("text/event-stream");
    answer.setEncoding("utf8");
    for (const event of ["one", "two", "three"]) {
      backend.emitEvent(event);
      const [arrived]: unknown[] = await once(answer, "data");
      expect(arrived).toBe(`data: ${event}\n\n`);
    }
    backend.emitEvent(undefined);
    answer.resume();
    await once(answer, "end");
  });
});

describe("a client that disconnects", () => {
  it.each([
    ["in the middle of the answer", "/public/sse"],
    ["before the answer", "/public/hang"],
  ])("aborts the request to the backend: %s", async (_name, path) => {
    const before = { abandoned: backend.abandoned(), requests: backend.requests.length };
    const sent = open(gate, path).end();
    sent.on("error", () => undefined);
    if (path.endsWith("sse")) await answerTo(sent);
    await until(() => backend.requests.length > before.requests);
    sent.destroy();
    await until(() => backend.abandoned() === before.abandoned + 1);
    const left = (line: Readonly<Record<string, unknown>>): boolean =>
      line["status"] === 499 && line["path"] === path;
    await until(() => gate.log().some(left));
  });

  it("aborts the request to the backend in the middle of its body", async () => {
    let state = "nothing";
    await using sink = await startPlainBackend((request) => {
      request.resume();
      request.once("data", () => (state = "begun"));
      request.once("aborted", () => (state = "aborted"));
    });
    await using through = await startSallyport({ target: sink.url });
    const sent = open(through, "/public/up", "POST", 100_000);
    sent.on("error", () => undefined);
    sent.write("only this");
    await until(() => state === "begun");
    sent.destroy();
    await until(() => state === "aborted");
    expect(through.exited()).toBe(false);
  });
});

describe("an answer", () => {
  it.each([1, 256, 4096, 4097, 70_000])(
    "of %i bytes with all byte values arrives unchanged",
    async (size) => {
      const sent = Buffer.from(Array.from({ length: size }, (_, at) => at % 256));
      await using source = await startPlainBackend((_request, response) => {
        response.writeHead(200, { "content-length": String(size) }).end(sent);
      });
      await using through = await startSallyport({ target: source.url });
      const answer = await answerTo(open(through, "/public/bytes").end());
      expect(Buffer.concat(await answer.toArray()).equals(sent)).toBe(true);
    },
  );
});

describe("a small body", () => {
  it("is buffered before the request is forwarded, so a client that disconnects meanwhile causes no request", async () => {
    let asked = 0;
    await using sink = await startPlainBackend((request, response) => {
      asked += 1;
      request.pipe(response);
    });
    await using through = await startSallyport({ target: sink.url });
    const left = open(through, "/public/up", "POST", 1000);
    left.on("error", () => undefined);
    left.write("only this");
    const stayed = open(through, "/public/up", "POST", 12);
    stayed.write("first, ");
    const underWay = "sallyport_http_requests_in_flight";
    await until(async () => (await scrape(through)).value(underWay) === 2);
    left.destroy();
    // 499 if the connection was reset, 400 if it was closed in the middle of the body.
    const lines = () => through.log().filter(({ path }) => path === "/public/up");
    await until(() => lines().length === 1);
    expect([499, 400]).toContain(lines()[0]?.["status"]);
    expect(asked).toBe(0);
    stayed.end("then.");
    const answer = await answerTo(stayed);
    expect(await text(answer)).toBe("first, then.");
    expect(asked).toBe(1);
  });
});

describe("a backend that dies in the middle of its response", () => {
  it("ends the client's connection", async () => {
    const answer = await answerTo(open(gate, "/public/die-mid-body").end());
    expect(answer.statusCode).toBe(200);
    await expect(pipeline(answer, async (chunks) => await chunks.toArray())).rejects.toThrow();
    expect(answer.complete).toBe(false);
  });
});
