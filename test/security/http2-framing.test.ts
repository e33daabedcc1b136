/**
 * Bodies without a length. In HTTP/2 a `GET` or `DELETE` may carry a body that no header announces; translated to HTTP/1.1
 * without framing it becomes the next request. Sallyport speaks HTTP/1.1 alone: HTTP/2 is never agreed on in the TLS
 * handshake, and its preface on the connection is refused.
 */
import { once } from "node:events";
import { connect } from "node:tls";
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { useSallyport } from "../support/pair.ts";
import { exchange } from "../support/raw-client.ts";

describe("Sallyport", () => {
  const standing = useSallyport();

  it("does not agree on HTTP/2", async () => {
    const { port, ca } = standing().gate;
    const where = { host: "127.0.0.1", port, ca, servername: "localhost" };
    const socket = connect({ ...where, ALPNProtocols: ["h2", "http/1.1"] });
    await once(socket, "secureConnect");
    expect(socket.alpnProtocol).toBe("http/1.1");
    socket.destroy();
  });

  it("refuses its preface", async () => {
    const { gate, backend } = standing();
    const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    expectRefusal(await exchange(gate, preface, { responses: Infinity }), 400);
    expect(backend.seen()).toEqual([]);
  });
});
