/** Clients that are too slow are disconnected at their configured timeout, not at another one. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dribble, startCrowd } from "../../support/crowd.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { editConfiguration } from "../../support/edits.ts";
import { request } from "../../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

/** The longest delay on a busy machine, in milliseconds. */
const LATE_MS = 3_000;
const UPLOAD = request(["POST /public/x HTTP/1.1", "Host: localhost", "Content-Length: 1000"]);

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    // The header timeout is the default, 10 s.
    config: { server: { timeouts: { request: "2s", keepAlive: "1s" } } },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

/**
 * Sends a text, then slowly more. @returns what is received, and after how many milliseconds the connection is closed.
 */
async function lasts(text: string, slowly?: string): Promise<{ ms: number; received: string }> {
  let since = 0;
  using one = startCrowd(gate, 1, {
    each(socket) {
      since = performance.now();
      if (text !== "") socket.write(text);
      if (slowly !== undefined) dribble(socket, slowly, 100);
    },
  });
  await until(() => one.closed() === 1, 20_000);
  return { ms: performance.now() - since, received: one.received()[0] ?? "" };
}

function expectAfter(ms: number, leastMs: number): void {
  expect(ms).toBeGreaterThan(leastMs - 50);
  expect(ms).toBeLessThan(leastMs + LATE_MS);
}

describe("server.timeouts", () => {
  it("request limits a body, whatever the header timeout is", async () => {
    const { ms, received } = await lasts(UPLOAD, "a");
    expectAfter(ms, 2_000);
    expect(received).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("request also limits the header section if it is the shorter one", async () => {
    const { ms, received } = await lasts("GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ", "a");
    expectAfter(ms, 2_000);
    expect(received).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("keepAlive limits the time between two requests", async () => {
    const { ms, received } = await lasts(request(["GET /public/x HTTP/1.1", "Host: localhost"]));
    expectAfter(ms, 1_000);
    expect(received).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("change with a reload for new connections", async () => {
    await editConfiguration(gate, (config) => {
      config.server["timeouts"] = { header: "1s", request: "30s" };
    });
    await until(() => gate.log().some(({ msg }) => msg === "the configuration was reloaded"));
    const { ms } = await lasts("GET / HTTP/1.1\r\nHost: localhost\r\n", "x: y\r\n");
    expectAfter(ms, 1_000);
  });
});
