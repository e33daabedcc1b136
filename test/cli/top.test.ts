import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SAMPLE_STATUS } from "../../docs/pictures/sample-status.ts";
import { statusLines } from "../../tools/top/top.ts";
import { ask } from "../support/ask.ts";
import { closedPort } from "../support/dead-ends.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { command, hasTerminal, startOnTerminal } from "./command.ts";

const PLAIN = { width: 160, color: false, unicode: true };

describe("the screen", () => {
  it("has every section", () => {
    const text = statusLines(SAMPLE_STATUS, undefined, PLAIN).join("\n");
    for (const word of [
      ...[
        "Sallyport 0.1.0  orders-7d9f  ready  up 3d 4h",
        "1,284,907 requests",
        "api.example.com/api/orders",
      ],
      ...[
        "ECONNREFUSED",
        "bad_credentials",
        "https://id.example.com",
        "reloaded 42m ago: 1 values changed",
      ],
      "10:00:00  401",
    ]) {
      expect(text).toContain(word);
    }
    expect(text).toMatch(/throttled +[ ▁-█]{30} +92/);
  });

  it("shows rates from the second sample on, but none across a restart", () => {
    const { traffic, routes, now, startedAt } = SAMPLE_STATUS;
    const later = {
      ...SAMPLE_STATUS,
      now: now + 2_000,
      traffic: { ...traffic, requests: traffic.requests + 50 },
      routes: routes.map((route) => ({ ...route, requests: route.requests + 5 })),
    };
    const text = statusLines(later, SAMPLE_STATUS, PLAIN).join("\n");
    expect(text).toContain("25.0 a second");
    expect(text).toContain("  2.5  ");
    const restarted = { ...later, startedAt: startedAt + 1 };
    expect(statusLines(restarted, SAMPLE_STATUS, PLAIN).join("\n")).not.toContain("a second");
  });

  it("fits the terminal, and removes control characters that requests contain", () => {
    const refusals = SAMPLE_STATUS.refusals.map((refusal) => ({
      ...refusal,
      path: `/\u001b[2J\u202e${"x".repeat(300)}`,
    }));
    for (const width of [40, 80, 200]) {
      const lines = statusLines({ ...SAMPLE_STATUS, refusals }, undefined, { ...PLAIN, width });
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
      // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
      expect(lines.join("\n")).not.toMatch(/[\u001b\u202e]/);
    }
  });
});

describe("sallyport top", () => {
  const stack = new AsyncDisposableStack();
  let gate: Sallyport;
  beforeAll(async () => {
    const backend = stack.use(await startEchoBackend());
    gate = stack.use(await startSallyport({ withoutToken: true, target: backend.url }));
  });
  afterAll(() => stack.disposeAsync());

  it("prints the status of a running proxy once", async () => {
    await ask(gate, "/orders");
    const url = `http://127.0.0.1:${gate.adminPort}`;
    const { code, out, err } = await command(["top", "--once", "--url", url]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/missing +GET 127\.0\.0\.1:\d+\/orders +127\.0\.0\.1/);
  });

  it.runIf(hasTerminal)("redraws on a terminal until it is interrupted", async () => {
    const url = `http://127.0.0.1:${gate.adminPort}`;
    const child = startOnTerminal(["top", "--interval", "500ms", "--url", url]);
    let out = "";
    await new Promise<void>((resolve) => {
      child.stdout.on("data", (data: Buffer) => {
        out += data.toString();
        if (out.split("\u001b[H").length > 3) resolve();
      });
    });
    expect(out).toContain("\u001b[?1049h");
    expect(out).toContain("a second");
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.stdin.write("\u0003");
    expect(await ended).toBe(0);
    expect(out).toContain("\u001b[?1049l");
  });

  it("says what is wrong if no status is available", async () => {
    const at = (port: number): string[] => ["top", "--once", "--url", `http://127.0.0.1:${port}`];
    const nobody = await command(at(await closedPort()));
    expect(nobody.code).toBe(1);
    expect(nobody.err).toContain("ECONNREFUSED");
    await using server = createServer((_, response) => response.end(`{"message":"\\u001b[2Jno"}`));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const other = await command(at((server.address() as AddressInfo).port));
    expect(other).toMatchObject({ code: 1, out: "" });
    expect(other.err).toContain("says 200: ?[2Jno");
    expect((await command(["top", "--interval", "1ms"])).code).toBe(2);
    expect((await command(["top", "--url", "ftp://x"])).code).toBe(2);
  });
});
