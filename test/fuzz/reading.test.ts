import { describe, expect, test } from "vitest";
import { readAnswers } from "../../fuzz/wire/answers.ts";
import { readRequests } from "../../fuzz/wire/requests.ts";

const HOST = "Host: a\r\n";
const get = (target: string, fields = ""): string =>
  `GET ${target} HTTP/1.1\r\n${HOST}${fields}\r\n`;
const post = (fields: string, body: string): string =>
  `POST / HTTP/1.1\r\n${HOST}${fields}\r\n${body}`;

describe("requests", () => {
  test("are read one after the other, with their bodies and trailers", () => {
    const { requests, stop } = readRequests(
      post("Content-Length: 3\r\n", "abc") +
        post("Transfer-Encoding: chunked\r\n", "2;x=y\r\nde\r\n1\r\nf\r\n0\r\nSum: 1\r\n\r\n") +
        get("/b?c"),
    );
    expect(requests.map(({ target, body }) => [target, body])).toEqual([
      ["/", "abc"],
      ["/", "def"],
      ["/b?c", ""],
    ]);
    expect(requests[1]?.trailers).toEqual([["Sum", "1"]]);
    expect(stop).toBe("end");
  });

  test.each([
    ["two lengths", post("Content-Length: 1\r\nContent-Length: 1\r\n", "a")],
    [
      "a length together with chunks",
      post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
    ],
    ["another transfer coding", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")],
    ["a sign before a length", post("Content-Length: +1\r\n", "a")],
    ["a space before a colon", get("/", "X : y\r\n")],
    ["a folded field", get("/", "X: y\r\n z\r\n")],
    ["a line feed alone", get("/", "X: y\nZ: z\r\n")],
    ["NUL", get("/", "X: \0\r\n")],
    ["no host", "GET / HTTP/1.1\r\n\r\n"],
    ["two hosts", get("/", HOST)],
    ["another version", `GET / HTTP/2.0\r\n${HOST}\r\n`],
    ["an unknown method", `XGET / HTTP/1.1\r\n${HOST}\r\n`],
    [
      "a chunk that is longer than declared",
      post("Transfer-Encoding: chunked\r\n", "1\r\nab\r\n0\r\n\r\n"),
    ],
    [
      "a length as trailer",
      post("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 1\r\n\r\n"),
    ],
  ])("are not read with %s", (_name, bytes) => {
    const { requests, stop } = readRequests(get("/before") + bytes + get("/after"));
    expect(requests.map(({ target }) => target)).toEqual(["/before"]);
    expect(stop).toBe("unclear");
  });

  test.each([
    ["incomplete", get("/a").slice(0, -1)],
    ["incomplete", post("Content-Length: 2\r\n", "a")],
    ["closed", get("/a", "Connection: close\r\n") + get("/b")],
    ["closed", `GET / HTTP/1.0\r\n\r\n${get("/b")}`],
    ["switched", get("/a", "Connection: Upgrade\r\nUpgrade: x\r\n") + get("/b")],
    ["switched", `CONNECT a:1 HTTP/1.1\r\n${HOST}\r\n${get("/b")}`],
  ])("end: %s", (stop, bytes) => {
    const reading = readRequests(bytes);
    expect(reading.stop).toBe(stop);
    expect(reading.requests.length).toBe(stop === "incomplete" ? 0 : 1);
  });
});

describe("answers", () => {
  const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";

  test("are assigned to their requests", () => {
    const { whole, stop } = readAnswers(`HTTP/1.1 100 Continue\r\n\r\n${ok}${ok}ab`, [
      "HEAD",
      "GET",
    ]);
    expect(whole.map(({ body }) => body)).toEqual(["", "ab"]);
    expect(stop).toBe("end");
  });

  test.each([
    ["unclear", `${ok}abc`],
    ["incomplete", `${ok}a`],
    ["unclear", "HTTP/1.1 200 OK\r\n\r\nab"],
    ["switched", "HTTP/1.1 101 Switching Protocols\r\n\r\n\0\0"],
  ])("stop: %s", (stop, bytes) => {
    const given = bytes.endsWith("abc") ? `${bytes}\r\n\r\n` : bytes;
    expect(readAnswers(given, ["GET"]).stop).toBe(stop);
  });
});
