/**
 * Methods that are never allowed. `TRACE` makes a backend return the headers that it received, including the identity
 * headers and everything else that the proxy added; `CONNECT` requests a tunnel through the proxy, and bare Node
 * closes the connection without an answer. Both get a 405 and are never forwarded. The same holds for the methods of
 * RTSP and ICE, which Node's parser accepts as HTTP: no one has checked what `DESCRIBE /x RTSP/1.1` means to a
 * backend.
 */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const CASES = [
  { name: "TRACE", line: "TRACE /orders" },
  { name: "TRACE on a public route", line: "TRACE /public/x" },
  { name: "CONNECT", line: "CONNECT localhost:22" },
  { name: "CONNECT without a port", line: "CONNECT localhost" },
  { name: "CONNECT with a path", line: "CONNECT /public/x" },
];
const bytesOf = (line: string, token: string): string =>
  request([`${line} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`]);

describe("Sallyport", () => {
  const standing = useSallyport();

  it.each(CASES)("answers $name with 405", async ({ name, line }) => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, bytesOf(line, gate.token));
    // The target of CONNECT is not a path, so 400 is also a valid answer.
    const malformed = name.startsWith("CONNECT w") && last.status === 400;
    expectEnvelope(last, malformed ? 400 : 405);
    expect(malformed || last.header("allow") !== undefined).toBe(true);
    const allowed = malformed ? undefined : "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    expect(last.header("allow")).toBe(allowed);
    expect(backend.connections.flatMap(({ requests }) => requests)).toEqual([]);
  });

  it("never opens a tunnel for data after CONNECT", async () => {
    const { gate, backend } = standing();
    const smuggled = request(["GET /admin HTTP/1.1", "Host: localhost"]);
    const answer = await exchange(gate, bytesOf("CONNECT localhost:22", gate.token) + smuggled, {
      responses: Infinity,
    });
    expect(answer.responses.map(({ status }) => status)).toEqual([405]);
    expect(answer.ended).toBe("closed");
    expect(backend.seen()).toEqual([]);
  });
});

describe.each([
  ["Sallyport", useSallyport, [405, 405, 405]],
  ["plain http-proxy-3", useNaiveProxy, [200, 200, 200]],
] as const)("%s and methods of other protocols", (_name, use, expected) => {
  const standing = use();

  it("answers accordingly", async () => {
    const { gate, backend } = standing();
    const statuses = [];
    for (const line of [
      "DESCRIBE /public/x RTSP/1.1",
      "PLAY /public/x RTSP/1.1",
      "SOURCE /public/x ICE/1.0",
    ]) {
      const { responses } = await exchange(
        gate,
        request([line, "Host: localhost", "Connection: close"]),
      );
      statuses.push(responses[0]?.status);
    }
    expect(statuses).toEqual(expected);
    expect(backend.seen()).toHaveLength(expected[0] === 200 ? 3 : 0);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy();

  it("forwards TRACE", async () => {
    const { gate, backend } = standing();
    expect((await exchange(gate, bytesOf("TRACE /orders", gate.token))).last.status).toBe(200);
    expect(backend.seen()).toEqual(["TRACE /orders"]);
  });

  it("closes at CONNECT without an answer", async () => {
    const { gate } = standing();
    const answer = await exchange(gate, bytesOf("CONNECT localhost:22", gate.token));
    expect([answer.ended, answer.raw]).toEqual(["closed", ""]);
  });
});
