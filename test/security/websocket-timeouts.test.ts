/**
 * WebSockets that are free to hold. http-proxy-3 has no time limit for the handshake with the backend, and none for
 * silence: a backend that never answers, or clients that open and go quiet, occupy two sockets each forever.
 */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";
import { until } from "../support/until.ts";

const upgrade = (path: string): string =>
  request([
    `GET ${path} HTTP/1.1`,
    "Host: localhost",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ]);
const SILENT = upgrade("/public/silent");
const QUIET = upgrade("/public/quiet");

const script: RawScript = ({ startLine }) =>
  startLine.includes("/silent")
    ? "hang"
    : {
        write:
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
          "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
      };

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: { upstreams: { app: { websocket: { handshake: "300ms", idle: "400ms" } } } },
  });

  it("answers 504 when the backend never answers the handshake", async () => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, SILENT, { responses: Infinity });
    expectEnvelope(answer.last, 504);
    expect(answer.last.header("proxy-status")).toBe("sallyport; error=http_response_timeout");
    expect(answer.ended).toBe("closed");
    await until(() => backend.connections.every(({ socket }) => socket.destroyed));
  });

  it("closes an idle connection", async () => {
    const { gate, backend } = standing();
    const answer = await exchange(gate, QUIET, { responses: Infinity });
    expect(answer.responses[0]?.status).toBe(101);
    expect(answer.ended).toBe("closed");
    await until(() => backend.connections.every(({ socket }) => socket.destroyed));
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy(script);

  it.each([
    ["the handshake", SILENT],
    ["a quiet connection", QUIET],
  ])("holds %s open", async (_name, bytes) => {
    const options = { responses: Infinity, timeoutMs: 800 };
    expect((await exchange(standing().gate, bytes, options)).ended).toBe("timeout");
  });
});
