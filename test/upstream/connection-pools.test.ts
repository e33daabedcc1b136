/** What an exchange expects of the connections to a target. */
import { createServer } from "node:http";
import { Duplex } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import type { BackendRequest } from "../../src/upstream/http/connection.ts";
import { Http1Pool } from "../../src/upstream/http1/http1-pool.ts";
import { hasNodeParser } from "../../src/upstream/http1/response-parser.ts";
import { originOf } from "../../src/upstream/pool/target-origin.ts";
import { GET, recorder } from "../support/exchange-recorder.ts";
import { type RawScript, startRawBackend } from "../support/raw-backend.ts";
import { until } from "../support/until.ts";

test("this Node has the known parser", () => {
  expect(hasNodeParser()).toBe(true);
});

describe("a Node is refused", () => {
  type Parser = Record<number, (part: Buffer) => void>;

  /** Changes what Node's parser does, until the end of the test. */
  function changeParser(change: (real: (bytes: Buffer) => unknown, kOnBody: number) => unknown) {
    const connection = new Duplex({ read: () => undefined });
    createServer().emit("connection", connection);
    const parser: object = Reflect.get(connection, "parser");
    connection.destroy();
    const { kOnBody } = parser.constructor as unknown as { readonly kOnBody: number };
    const prototype: object = Object.getPrototypeOf(parser);
    const real: (bytes: Buffer) => unknown = Reflect.get(prototype, "execute");
    onTestFinished(() => void Reflect.set(prototype, "execute", real));
    Reflect.set(prototype, "execute", change(real, kOnBody));
  }

  test("whose parser passes on views of what it read", () => {
    changeParser((real, kOnBody) => {
      return function (this: Parser, bytes: Buffer): unknown {
        const onBody = this[kOnBody];
        this[kOnBody] = ({ length }) => onBody?.(bytes.subarray(-length));
        return real.call(this, bytes);
      };
    });
    expect(hasNodeParser()).toBe(false);
  });

  test("whose parser fails", () => {
    changeParser(() => () => new Error("HPE_INTERNAL"));
    expect(hasNodeParser()).toBe(false);
  });
});

describe("a pool of HTTP/1.1", () => {
  async function started(script: RawScript) {
    const backend = await startRawBackend(script);
    const pool = new Http1Pool(originOf(backend.url), 5_000);
    let closed = false;
    onTestFinished(async () => {
      await backend.close();
      if (!closed) await pool.close();
    });
    const ask = async (request: Partial<BackendRequest> = {}, exchange = recorder()) => {
      pool.dispatch({ ...GET, ...request }, exchange);
      await exchange.ended;
      return exchange;
    };
    const close = async () => {
      closed = true;
      await pool.close();
    };
    return { backend, pool, ask, close };
  }

  const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

  test("one connection carries several requests", async () => {
    const { backend, ask } = await started(() => ({ write: OK }));
    expect((await ask()).wasUsed).toBe(false);
    const second = await ask();
    expect([second.status, second.text, second.wasUsed]).toEqual([200, "ok", true]);
    expect(backend.connections).toHaveLength(1);
  });

  test.each([
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
  ])("a connection that ends with %j is not used again", async (write) => {
    const { backend, ask } = await started(() => ({ write }));
    for (let asked = 0; asked < 2; asked += 1) {
      expect(await ask()).toMatchObject({ text: "ok", error: undefined });
    }
    expect(backend.connections).toHaveLength(2);
  });

  test("reads chunks, interim responses and trailers byte by byte", async () => {
    const write =
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nx-a: 2\r\n\r\n" +
      "2;x=y\r\nab\r\n3\r\ncde\r\n0\r\nX-Sum: 7\r\n\r\n";
    const { ask } = await started(() => ({ write, everyMs: 0 }));
    expect(await ask()).toMatchObject({
      interim: [103],
      status: 200,
      text: "abcde",
      trailers: { "x-sum": "7" },
      headers: { "x-a": ["1", "2"] },
    });
  });

  test("ignores an unsolicited 100, and preserves every byte of a reason phrase", async () => {
    const answer = "HTTP/1.1 200 Tr\u00e8s bien\r\nContent-Length: 2\r\n\r\nok";
    const write = Buffer.from(`HTTP/1.1 100 Continue\r\n\r\n${answer}`, "latin1");
    const { ask } = await started(() => ({ write, everyMs: 0 }));
    expect(await ask()).toMatchObject({ text: "ok", statusMessage: "Tr\u00e8s bien" });
  });

  test("reads forty fields, and names of object properties", async () => {
    const names = Array.from({ length: 40 }, (_, index) => `x-${index}`);
    const odd = ["constructor", "__proto__", "tostring"];
    const fields = [...names, ...odd].map((name) => `${name}: ${name}\r\n`).join("");
    const { ask } = await started(() => ({ write: `HTTP/1.1 204 No Content\r\n${fields}\r\n` }));
    const { headers } = await ask();
    for (const name of names) expect(headers[name]).toBe(name);
  });

  test("a body without a length ends with the connection", async () => {
    const { ask } = await started(() => ({
      write: "HTTP/1.1 200 OK\r\n\r\nall of it",
      then: "close",
    }));
    expect(await ask()).toMatchObject({ status: 200, text: "all of it", error: undefined });
  });

  test("HEAD has no body, and its connection is not used again", async () => {
    const { backend, ask } = await started(({ startLine }) => ({
      write: startLine.startsWith("HEAD") ? OK.slice(0, -2) : OK,
    }));
    expect(await ask({ method: "HEAD" })).toMatchObject({ status: 200, text: "" });
    expect((await ask()).wasUsed).toBe(false);
    expect(backend.connections).toHaveLength(2);
  });

  test.each([
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"],
    [
      "a length and chunks",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "another protocol",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ],
    ["an invalid status", "HTTP/1.1 099 None\r\nContent-Length: 0\r\n\r\n"],
    ["another protocol's greeting", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["a header section that is too long", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(70_000)}\r\n\r\n`],
    ["an end too soon", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"],
  ])("%s is an error", async (what, write) => {
    const { ask } = await started(() =>
      what.endsWith("soon") ? { write, then: "close" } : { write },
    );
    expect((await ask()).error).toBeInstanceOf(Error);
  });

  test.each([
    ["in the same segment", 0],
    ["a moment later", 20],
  ])("bytes after a response, %s, are not the response to the next request", async (_when, ms) => {
    let asked = 0;
    const { ask, backend } = await started((_request, { socket }) => {
      asked += 1;
      const forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
      if (asked > 1) return { write: OK };
      if (ms === 0) return { write: OK + forged };
      setTimeout(() => void socket.write(forged), ms);
      return { write: OK };
    });
    expect((await ask()).text).toBe("ok");
    await until(() => backend.connections.every(({ socket }) => ms === 0 || socket.closed), 5_000);
    expect(await ask()).toMatchObject({ text: "ok", wasUsed: false });
  });

  test("a connection that is lost while idle fails no request", async () => {
    const { ask, backend } = await started(() => ({ write: OK, then: "close" }));
    for (let asked = 0; asked < 3; asked += 1) {
      expect(await ask()).toMatchObject({ text: "ok", error: undefined });
      await until(() => backend.connections.every(({ socket }) => socket.closed), 5_000);
    }
  });

  test("aborting a request closes its connection", async () => {
    const { backend, pool } = await started(() => "hang");
    const exchange = recorder();
    pool.dispatch(GET, exchange);
    await until(() => backend.requests().length === 1, 5_000);
    exchange.control?.abort(new Error("enough"));
    await exchange.ended;
    expect(exchange.error?.message).toBe("enough");
    await until(() => backend.connections[0]?.socket.closed === true, 5_000);
  });

  test("nothing is read while the response is paused", async () => {
    const body = "x".repeat(8_000_000);
    const { ask } = await started(() => ({
      write: `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    }));
    let pauses = 0;
    const exchange = recorder(({ control, text }) => {
      if (pauses > 0) return;
      pauses += 1;
      control?.pause();
      const before = text.length;
      setTimeout(() => {
        expect(exchange.text.length - before).toBeLessThan(1_000_000);
        control?.resume();
      }, 100);
    });
    expect((await ask({}, exchange)).text.length).toBe(body.length);
    expect(pauses).toBe(1);
  });

  test("an invalid request is not sent", async () => {
    const { ask, backend } = await started(() => ({ write: OK }));
    for (const value of ["a\r\nX-B: c", "a\u0000", "\u0100"]) {
      const asking = ask({ headers: ["Host", "a", "X-A", value] });
      await expect(
        asking.then(({ error }) => {
          throw error ?? new Error("was sent");
        }),
      ).rejects.toMatchObject({ kind: "unsendable" });
    }
    expect(backend.requests()).toEqual([]);
  });

  test("a pool that closes lets its requests finish", async () => {
    const { backend, pool, close } = await started((_request, { socket }) => {
      setTimeout(() => void socket.write(OK), 50);
      return "hang";
    });
    const exchange = recorder();
    pool.dispatch(GET, exchange);
    await until(() => backend.requests().length === 1, 5_000);
    await close();
    await exchange.ended;
    expect(exchange.text).toBe("ok");
    await until(() => backend.connections[0]?.socket.closed === true, 5_000);
  });
});
