/**
 * Silence is not a reset. With `proxyTimeout`, http-proxy-3 destroys the request and reports ECONNRESET, the same as
 * for a backend that reset the connection: alerts, retries and clients cannot distinguish a slow backend from a dead
 * one. Sallyport has its own timers: 504 for silence, 502 for a lost connection, each with its `Proxy-Status` (RFC
 * 9209).
 */
import { describe, expect, it } from "vitest";
import { expectEnvelope } from "../support/envelope.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import type { RawScript } from "../support/raw-backend.ts";
import { exchange, request } from "../support/raw-client.ts";

const script: RawScript = ({ startLine }) => {
  if (startLine.includes("/silent")) return "hang";
  if (startLine.includes("/stalls")) {
    return { write: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf" };
  }
  return { write: "", then: "reset" };
};
const post = (path: string): string =>
  request([`POST /public/${path} HTTP/1.1`, "Host: localhost", "Content-Length: 2"], "hi");

describe("Sallyport", () => {
  const standing = useSallyport(script, {
    withoutToken: true,
    config: { upstreams: { app: { timeouts: { response: "1s", idle: "1s" } } } },
  });

  it("answers 504 when the backend is silent", async () => {
    const { last } = await exchange(standing().gate, post("silent"));
    expectEnvelope(last, 504);
    expect(last.header("proxy-status")).toBe("sallyport; error=http_response_timeout");
  });

  it("answers 502 when the backend breaks the connection", async () => {
    const { gate, backend } = standing();
    const { last } = await exchange(gate, post("reset"));
    expectEnvelope(last, 502);
    expect(last.header("proxy-status")).toBe("sallyport; error=connection_terminated");
    expect(backend.seen()).toEqual(["POST /public/reset"]);
  });

  it("ends the answer when the backend stalls in mid-body", async () => {
    const answer = await exchange(standing().gate, post("stalls"), { responses: Infinity });
    expect(answer.ended).toBe("closed");
    expect(answer.responses.filter(({ status }) => status === 200)).toEqual([]);
  });
});

describe("plain http-proxy-3", () => {
  const standing = useNaiveProxy(script, { proxyTimeout: 300 });

  it("reports the same for both", async () => {
    const { gate } = standing();
    const silent = await exchange(gate, post("silent"));
    const reset = await exchange(gate, post("reset"));
    expect(silent.last.body).toBe("ECONNRESET");
    expect(reset.last.body).toBe("ECONNRESET");
  });
});
