/**
 * Lost trailers. http-proxy-3 drops trailers and 103 answers: a gRPC call loses its status, a checksum after a stream
 * is lost, and the client takes a failed answer for a successful one. Sallyport passes on the backend's trailers,
 * except fields that must not be trailers (RFC 9110 §6.5.1), and 103. The trailers of a request are dropped.
 */
import { describe, expect, it } from "vitest";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { chunked, exchange, request } from "../support/raw-client.ts";

const script: RawScript = ({ startLine }) =>
  startLine.includes("/hints")
    ? {
        write:
          "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n" +
          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhints",
      }
    : {
        write: request(
          ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Trailer: grpc-status"],
          chunked("body", ["grpc-status: 0"]),
        ),
      };

const HEAD = ["Host: localhost", "TE: trailers", "Transfer-Encoding: chunked", "Trailer: X-Sum"];
const call = request(["POST /public/call HTTP/1.1", ...HEAD], chunked("body", ["X-Sum: 42"]));
const hints = request(["GET /public/hints HTTP/1.1", "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(script, { withoutToken: true });

  it("passes the backend's trailers to the client", async () => {
    const { last } = await exchange(standing().gate, call);
    expect([last.status, last.body]).toEqual([200, "body"]);
    expect(last.trailers).toEqual([["grpc-status", "0"]]);
  });

  it("drops the client's trailers, so that none becomes an identity", async () => {
    const { gate, backend } = standing();
    const forged = ["X-Auth-Subject: root", "Authorization: Bearer x", "X-Sum: 4"];
    await exchange(gate, request(["POST /public/call HTTP/1.1", ...HEAD], chunked("body", forged)));
    const [seen] = backend.requests();
    expect(seen?.body.toString()).toBe("body");
    expect(seen?.trailers).toEqual([]);
    for (const name of ["x-auth-subject", "authorization", "x-sum"]) {
      expect(valuesOf(seen?.headers ?? [], name)).toEqual([]);
    }
  });

  it("passes 103 on before the answer", async () => {
    const { responses } = await exchange(standing().gate, hints);
    expect(responses.map(({ status }) => status)).toEqual([103, 200]);
    expect(responses[0]?.header("link")).toBe("</style.css>; rel=preload");
    expect(responses[1]?.body).toBe("hints");
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy(script);

  it("drops trailers in both directions, and 103", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, call);
    expect(last.trailers).toEqual([]);
    expect(backend.requests()[0]?.trailers).toEqual([]);
    const { responses } = await exchange(gate, hints);
    expect(responses.map(({ status }) => status)).toEqual([200]);
  });
});
