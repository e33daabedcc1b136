/**
 * Answers that become several. A backend that copies a client's text into a header lets the client write CR and LF,
 * and with them headers, cookies, or a complete second answer for the next client (response splitting); an answer
 * with an ambiguous end has the same effect on a keep-alive connection. Every answer is parsed strictly, its framing
 * is written again, and bytes after its end close the connection to the backend before anyone gets them as an answer,
 * if they arrive before the next request is sent there. Later ones look like the answer to that request: HTTP/1.1
 * cannot distinguish them.
 */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const FINE = `${OK}Content-Length: 4\r\n\r\nfine`;
const POISON = `${OK}Content-Length: 6\r\n\r\npoison`;

/** Not HTTP according to RFC 9112: one 502. */
const BROKEN: Readonly<Record<string, string>> = {
  "lf-in-value": `${OK}X-A: a\nSet-Cookie: evil=1\r\nContent-Length: 2\r\n\r\nok`,
  "cr-in-value": `${OK}X-A: a\rSet-Cookie: evil=1\r\nContent-Length: 2\r\n\r\nok`,
  "folded-value": `${OK}X-A: a\r\n Set-Cookie: evil=1\r\nContent-Length: 2\r\n\r\nok`,
  "nul-in-value": `${OK}X-A: a\0b\r\nContent-Length: 2\r\n\r\nok`,
  "blank-before-colon": `${OK}Content-Length : 2\r\n\r\nok`,
  "empty-name": `${OK}: x\r\nContent-Length: 2\r\n\r\nok`,
  "lf-ends-head": `${OK}Content-Length: 2\r\n\nok`,
  "coding-and-length": `${OK}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n`,
  "identity-and-length": `${OK}Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok`,
  "length-with-sign": `${OK}Content-Length: +2\r\n\r\nok`,
  "length-list": `${OK}Content-Length: 2, 2\r\n\r\nok`,
};

/** Valid answers, followed by unsolicited data. */
const FOLLOWED: Readonly<Record<string, string>> = {
  "second-answer": FINE + POISON,
  "beyond-length": `${OK}Content-Length: 4\r\n\r\nfineXX${POISON}`,
  "204-with-body": `HTTP/1.1 204 No Content\r\nContent-Length: ${POISON.length}\r\n\r\n${POISON}`,
  "304-with-body": `HTTP/1.1 304 Not Modified\r\nContent-Length: ${POISON.length}\r\n\r\n${POISON}`,
  "behind-last-chunk": `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n${POISON}`,
  head: FINE.replace("fine", "") + POISON,
};

const NAMES: Readonly<Record<string, string>> = {
  names: request(
    [
      "HTTP/1.1 200 OK",
      "Connection: x-hop, content-length, x-request-id",
      "X-Hop: 1",
      "X-Request-Id: forged",
      "Content-Length: 4",
    ],
    "fine",
  ),
  trailers: request(
    ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"],
    chunked("fine", ["X-Request-Id: forged", "Host: x", "Connection: close", "X-Sum: 1"]),
  ),
};

const script: RawScript = ({ startLine }) => {
  const name = /\/public\/([a-z0-9-]+)/.exec(startLine)?.[1] ?? "";
  return { write: BROKEN[name] ?? FOLLOWED[name] ?? NAMES[name] ?? FINE };
};
const get = (name: string, method = "GET"): string =>
  request([`${method} /public/${name} HTTP/1.1`, "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(script, { withoutToken: true, config: {} });

  it("never reuses a connection on which unsolicited data arrived", async () => {
    const { gate, backend } = standing();
    for (let round = 0; round < 20; round += 1) {
      expect((await exchange(gate, get("x"))).last.body).toBe("fine");
      // On all idle connections, so that the next one used has the second answer on it.
      const idle = backend.connections.filter(({ socket }) => !socket.destroyed);
      expect(idle.length).toBeGreaterThan(0);
      for (const { socket } of idle) {
        // Otherwise the system delays it until the first answer is acknowledged (RFC 1122 §4.2.3.4).
        socket.setNoDelay(true);
        await new Promise((sent) => socket.write(POISON, sent));
      }
      expect((await exchange(gate, get("x"))).last.body).toBe("fine");
      await until(() => idle.every(({ socket }) => socket.destroyed));
    }
  });

  it.each(Object.keys(BROKEN))("answers %s with one 502", async (name) => {
    const { gate } = standing();
    const answer = await exchange(gate, get(name));
    expectEnvelope(answer.last, 502);
    expect(answer.raw).not.toMatch(/evil/);
    expect(answer.responses).toHaveLength(1);
    expect((await exchange(gate, get("x"))).last.body).toBe("fine");
  });

  it.each(Object.keys(FOLLOWED))("gives no one the data after %s", async (name) => {
    const { gate } = standing();
    const method = name === "head" ? "HEAD" : "GET";
    const first = await exchange(gate, get(name, method), { head: method === "HEAD" });
    const others = await Promise.all(
      Array.from({ length: 8 }, () => exchange(gate, get("x") + get("x"), { responses: 2 })),
    );
    expect(first.raw).not.toContain("poison");
    expect(others.flatMap(({ responses }) => responses.map(({ body }) => body))).toEqual(
      Array.from({ length: 16 }, () => "fine"),
    );
  });

  it("sends no length with 204 (RFC 9110 §8.6)", async () => {
    const { last } = await exchange(standing().gate, get("204-with-body"));
    expect(last.status).toBe(204);
    expect(last.header("content-length")).toBeUndefined();
  });

  it("frames the answer itself if the backend declares its length hop-by-hop", async () => {
    const { last } = await exchange(standing().gate, get("names"));
    expect([last.status, last.body, last.header("x-hop")]).toEqual([200, "fine", undefined]);
    expect(last.header("x-request-id")).not.toContain("forged");
  });

  it("passes on no trailer that would change how the answer is read", async () => {
    const { last } = await exchange(standing().gate, get("trailers"));
    expect(last.trailers).toEqual([["x-sum", "1"]]);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy(script);

  it("passes on the backend's connection fields, and a length with 204", async () => {
    const { gate } = standing();
    const { last } = await exchange(gate, get("names"));
    expect([last.header("x-hop"), last.header("x-request-id")]).toEqual(["1", "forged"]);
    const empty = await exchange(gate, get("204-with-body"));
    expect(empty.last.header("content-length")).toBe(String(POISON.length));
  });
});
