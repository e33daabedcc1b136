/**
 * A backend that dies in the middle of a body. http-proxy-3 lets the client wait for the rest forever, so every crash
 * of the backend leaves hanging clients and open sockets. The client must see that the answer is incomplete: the
 * connection ends without the last chunk and without the promised length.
 */
import { describe, expect, it } from "vitest";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const BODIES: Readonly<Record<string, string>> = {
  length: "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this",
  chunked: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nonly\r\n",
  "half-chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\nonly",
};

const script: RawScript = ({ startLine }) => {
  const [, kind = "", end] = /\/public\/([a-z-]+)\/(close|reset)/.exec(startLine) ?? [];
  return { write: BODIES[kind] ?? "", then: end === "reset" ? "reset" : "close" };
};

const CASES = Object.keys(BODIES).flatMap((kind) => [`${kind}/close`, `${kind}/reset`]);
const get = (name: string): string => request([`GET /public/${name} HTTP/1.1`, "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(script, { withoutToken: true, config: {} });

  it.each(CASES)("ends the client's connection too: %s", async (name) => {
    const { gate } = standing();
    const answer = await exchange(gate, get(name), { responses: Infinity });
    expect(answer.ended).toBe("closed");
    expect(answer.responses.filter(({ status }) => status === 200)).toEqual([]);
    expect(answer.raw.endsWith("0\r\n\r\n")).toBe(false);
    expect(gate.exited()).toBe(false);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy(script);

  it("leaves the client hanging", async () => {
    const { gate } = standing();
    const answer = await exchange(gate, get("length/close"), { timeoutMs: 1000 });
    expect(answer.ended).toBe("timeout");
  });
});
