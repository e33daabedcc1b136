/**
 * Headers that belong to one connection (RFC 9110 §7.6.1). A client that lists `X-Auth-Subject` in `Connection` asks
 * a proxy to remove the identity that the proxy has just set; `Keep-Alive`, `TE` or `Proxy-Authorization`, if
 * forwarded, control the connection to the backend or leak credentials; and a backend's fields about its connection
 * concern no one else. None of them is forwarded, in either direction.
 */
import { describe, expect, it } from "vitest";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const script: RawScript = ({ headers }) =>
  valuesOf(headers, "upgrade").length > 0 ? { write: request(SWITCH), then: "close" } : answer;

/** A 101 with the same fields, and an end-to-end field in an old encoding. */
const SWITCH = [
  "HTTP/1.1 101 Switching Protocols",
  "Connection: X-Internal, Upgrade",
  "Upgrade: WebSocket",
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
  "X-Internal: secret",
  "Keep-Alive: timeout=77",
  "Proxy-Authenticate: Basic",
  "Proxy-Authentication-Info: x",
  "Proxy-Connection: keep-alive",
  "Content-Length: 7",
  "X-Request-Id: theirs",
  "X-End-To-End: caf\xe9",
  "Set-Cookie: a=1",
  "Set-Cookie: b=2",
];

const answer = {
  write: request(
    [
      "HTTP/1.1 200 OK",
      "Connection: X-Internal, keep-alive",
      "X-Internal: secret",
      "Keep-Alive: timeout=77",
      "Proxy-Authenticate: Basic",
      "Proxy-Authentication-Info: x",
      "Proxy-Connection: keep-alive",
      "X-End-To-End: kept",
      "Content-Length: 2",
    ],
    "ok",
  ),
};

const attack = (token: string): string =>
  request([
    "GET /orders HTTP/1.1",
    "Host: localhost",
    `Authorization: Bearer ${token}`,
    "Connection: keep-alive, X-Hop , x-auth-subject",
    "Connection: X-Second",
    "X-Hop: 1",
    "X-Second: 2",
    "Keep-Alive: timeout=1",
    "Proxy-Connection: keep-alive",
    "Proxy-Authorization: Basic eDp5",
    "TE: gzip",
    "X-End-To-End: kept",
  ]);

const upgrade = (token: string): string =>
  request([
    ...["GET /orders HTTP/1.1", "Host: localhost", `Authorization: Bearer ${token}`],
    ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
    ...["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "X-Request-Id: ours"],
  ]);

const HOP = ["x-hop", "x-second", "keep-alive", "proxy-connection", "proxy-authorization", "te"];
const BACK = ["x-internal", "proxy-authenticate", "proxy-authentication-info", "proxy-connection"];

describe("Sallyport", () => {
  const standing = useSallyport(script);

  it("does not pass the client's connection headers to the backend", async () => {
    const { gate, backend } = standing();
    expect((await exchange(gate, attack(gate.token))).last.status).toBe(200);
    const headers = backend.requests()[0]?.headers ?? [];
    expect(HOP.filter((name) => valuesOf(headers, name).length > 0)).toEqual([]);
    expect(valuesOf(headers, "x-end-to-end")).toEqual(["kept"]);
    expect(valuesOf(headers, "connection").join()).not.toMatch(/x-/i);
  });

  it("sets the identity even if the client lists it in Connection", async () => {
    const { gate, backend } = standing();
    await exchange(gate, attack(gate.token));
    const headers = backend.requests()[0]?.headers ?? [];
    expect(valuesOf(headers, "x-auth-subject")).toEqual(["alice"]);
  });

  it("does not let Connection remove framing, host or authorization", async () => {
    const { gate, backend } = standing();
    const bytes = request(
      [
        "POST /orders HTTP/1.1",
        "Host: localhost",
        "Content-Length: 4",
        `Authorization: Bearer ${gate.token}`,
        "Connection: content-length, host, authorization, transfer-encoding",
      ],
      "body",
    );
    const answer = await exchange(gate, bytes);
    expect([200, 400]).toContain(answer.last.status);
    await exchange(gate, request(["GET /public/x HTTP/1.1", "Host: localhost"]));
    for (const seen of backend.requests()) {
      expect(valuesOf(seen.headers, "host")).toHaveLength(1);
    }
    expect(backend.requests().at(-1)?.startLine).toBe("GET /public/x HTTP/1.1");
  });

  it("does not pass the backend's connection headers to the client", async () => {
    const { gate } = standing();
    const { last } = await exchange(gate, attack(gate.token));
    expect(BACK.filter((name) => last.header(name) !== undefined)).toEqual([]);
    expect(last.header("connection") ?? "").not.toMatch(/internal/i);
    expect(last.header("keep-alive") ?? "").not.toContain("77");
    expect(last.header("x-end-to-end")).toBe("kept");
  });

  it("does not pass those of a 101 to the client, either", async () => {
    const { gate } = standing();
    const { responses } = await exchange(gate, upgrade(gate.token), { responses: Infinity });
    expect(responses.map(({ status }) => status)).toEqual([101]);
    const fields = responses[0]?.headers.map(([name, value]) => [name.toLowerCase(), value]);
    expect(fields?.toSorted()).toEqual([
      ["connection", "Upgrade"],
      ["sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="],
      ["set-cookie", "a=1"],
      ["set-cookie", "b=2"],
      ["upgrade", "websocket"],
      ["x-end-to-end", "caf\xe9"],
      ["x-request-id", "ours"],
    ]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy(script);

  it("passes them on in both directions", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, attack(gate.token));
    const headers = backend.requests()[0]?.headers ?? [];
    expect(HOP.filter((name) => valuesOf(headers, name).length > 0)).toEqual(HOP);
    expect(BACK.filter((name) => last.header(name) !== undefined)).toEqual(BACK);
    const switched = await exchange(gate, upgrade(gate.token), { responses: Infinity });
    const [first] = switched.responses;
    expect(BACK.filter((name) => first?.header(name) !== undefined)).toEqual(BACK);
  });
});
