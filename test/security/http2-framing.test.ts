/**
 * Bodies without a length. In HTTP/2 a `GET` or `DELETE` may have a body that no header announces; translated to
 * HTTP/1.1 without framing, it becomes the next request. By default Sallyport speaks only HTTP/1.1: it never
 * negotiates HTTP/2 in the TLS handshake, and refuses its preface.
 */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:tls";
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { startNaiveHttp2 } from "../support/naive-http2.ts";
import { use, useSallyport } from "../support/pair.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

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

describe("a proxy that translates HTTP/2 naively", () => {
  const standing = use(startRawBackend, startNaiveHttp2);

  it.each(["GET", "DELETE"])("lets the backend execute the body of %s", async (method) => {
    const { gate, backend } = standing();
    backend.forget();
    const session = connectHttp2(`https://localhost:${gate.port}`, {
      ...(gate.ca === undefined ? {} : { ca: gate.ca }),
      lookup: (_name, _options, found) => found(null, [{ address: "127.0.0.1", family: 4 }]),
    });
    const stream = session.request({ ":method": method, ":path": "/x" }, { endStream: false });
    stream.on("error", () => undefined).resume();
    stream.end(request(["GET /admin HTTP/1.1", "Host: localhost"]));
    await until(() => backend.seen().includes("GET /admin"));
    expect(backend.seen()).toEqual([`${method} /x`, "GET /admin"]);
    session.destroy();
  });
});
