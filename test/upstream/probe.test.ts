import { describe, expect, it, onTestFinished } from "vitest";
import type { AdminResponse } from "../../src/core/admin-page.ts";
import { probePage } from "../../src/upstream/pool/health-check.ts";
import { startRawBackend } from "../support/raw-backend.ts";
import { until } from "../support/until.ts";
import { UPSTREAM_DEFAULTS } from "../support/upstream-defaults.ts";

/** Time limits in milliseconds: for a response that never ends, and for one that does, on any slow machine. */
const SHORT_MS = 300;
const LONG_MS = 60_000;

/** Starts a backend that answers the first request with these bytes without closing, and works normally afterwards. */
async function startBroken(bytes: string, limitMs = LONG_MS) {
  const backend = await startRawBackend(() => ({
    write: backend.requests().length === 1 ? bytes : OK,
  }));
  onTestFinished(() => backend.close());
  const times = { connect: 1_000, response: 1_000, idle: 1_000 };
  const page = probePage(
    { path: "/healthz", target: "/health" },
    {
      ...UPSTREAM_DEFAULTS,
      name: "app",
      targets: [backend.url],
      connections: 1,
      queue: { length: 1, timeout: 1_000 },
      timeouts: times,
      websocket: { handshake: 1_000, idle: 1_000 },
    },
    limitMs,
  );
  const question = { query: new URLSearchParams(), headers: {}, peer: "127.0.0.1", allowed: false };
  const ask = async (): Promise<AdminResponse> => page.answer(question);
  return { backend, ask };
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const told = (status: number, body: string) => expect.objectContaining({ status, body });

describe("a backend that breaks the protocol", () => {
  it.each([
    ["switches protocols unasked", "HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
    ["has a status below 100", "HTTP/1.1 099 X\r\nContent-Length: 2\r\n\r\nab"],
    ["has the status 0", "HTTP/1.1 000 X\r\nContent-Length: 2\r\n\r\nab"],
    ["has a status above 599", "HTTP/1.1 600 X\r\nContent-Length: 2\r\n\r\nab"],
    ["uses another protocol", "SSH-2.0-OpenSSH_9.9\r\n"],
  ])("and %s is reported as such, and queried again the next time", async (_what, bytes) => {
    const { ask } = await startBroken(bytes);
    expect(await Promise.all([ask(), ask()])).toEqual(
      Array(2).fill(told(502, "invalid_response\n")),
    );
    expect(await ask()).toEqual(told(200, "ok"));
  });
});

describe("a backend that times out", () => {
  it.each([
    ["in its header section", "HTTP/1.1 200 OK\r\n"],
    ["after an interim response", "HTTP/1.1 103 Early Hints\r\n\r\n"],
    ["in a body with a length", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"],
    ["in a chunked body", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"],
    ["in a body that ends with the connection", "HTTP/1.1 200 OK\r\n\r\nhalf"],
  ])("%s is a 504, and is queried again the next time", async (_where, bytes) => {
    const { ask, backend } = await startBroken(bytes, SHORT_MS);
    expect(await ask()).toEqual(told(504, "response_timeout\n"));
    await until(() => backend.connections[0]?.socket.destroyed === true);
    // On a slow machine a working backend may be late, too.
    await until(async () => (await ask()).status === 200);
  });
});
