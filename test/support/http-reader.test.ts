import { describe, expect, it } from "vitest";
import { readMessages } from "./http-reader.ts";

const read = (kind: "request" | "response", text: string, ended = false) =>
  readMessages(kind, Buffer.from(text, "latin1"), ended);

describe("readMessages", () => {
  it("reads bytes after a message as the next request", () => {
    const { messages } = read(
      "request",
      "DELETE /x HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n",
    );
    expect(messages.map(({ startLine }) => startLine)).toEqual([
      "DELETE /x HTTP/1.1",
      "GET /admin HTTP/1.1",
    ]);
  });

  it("reads chunks and trailers", () => {
    const { messages, rest } = read(
      "request",
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nSum: 1\r\n\r\nGET",
    );
    expect(messages[0]?.body.toString()).toBe("abc");
    expect(messages[0]?.trailers).toEqual([["Sum", "1"]]);
    expect(rest.toString()).toBe("GET");
  });

  it.each([
    "hello\r\n\r\n",
    "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "GET / HTTP/1.1\r\nA : b\r\n\r\n",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
  ])("stops at an invalid request: %j", (text) => {
    const { messages, broken } = read("request", text);
    expect(messages).toEqual([]);
    expect(broken).toBeDefined();
  });

  it("waits until a message is complete", () => {
    const text = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab";
    expect(read("response", text, true).messages).toEqual([]);
    expect(read("response", `${text}c`).messages).toHaveLength(1);
  });

  it("ends a response without a length with the connection", () => {
    const text = "HTTP/1.1 200 OK\r\n\r\nab";
    expect(read("response", text).messages).toEqual([]);
    expect(read("response", text, true).messages[0]?.body.toString()).toBe("ab");
  });
});
