import { Agent } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command } from "../../cli/command.ts";
import { ask, fieldsOf } from "../../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { startHoldingBackend } from "../../support/holding-backend.ts";
import { logLine } from "../../support/log-line.ts";
import { startSallyport, type ConfigParts, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

function start(
  delay: string,
  timeout: string,
  { admin = {}, target = backend.url }: { admin?: ConfigParts; target?: string } = {},
): Promise<Sallyport> {
  const config = { server: { drain: { delay, timeout } }, admin };
  return startSallyport({ target, config });
}

function drainCommand({ directory, adminPort }: Sallyport, ...more: string[]) {
  const listen = { SALLYPORT_ADMIN__LISTEN: `127.0.0.1:${adminPort}` };
  return command(["drain", "--config", join(directory, "config.yaml"), ...more], listen);
}

async function statusOf({ adminPort }: Sallyport, path: string): Promise<number> {
  return (await ask({ port: adminPort }, path)).status;
}

const refusesConnections = (gate: Sallyport): Promise<boolean> =>
  ask(gate, "/public/after").then(
    () => false,
    () => true,
  );

describe("sallyport drain", () => {
  it("waits for running requests; health checks still work, and SIGTERM then ends it at once", async () => {
    await using holding = await startHoldingBackend();
    await using gate = await start("2s", "30s", { target: holding.url });
    const running = ask(gate, "/public/hold/x");
    await until(() => holding.held().length === 1);
    const draining = drainCommand(gate);
    await until(async () => (await statusOf(gate, "/readyz")) === 503);
    expect((await ask(gate, "/public/during")).status).toBe(200);
    await until(() => refusesConnections(gate));
    holding.release("/public/hold/x");
    expect(await Promise.race([draining, running])).toMatchObject({ status: 200 });
    expect(await draining).toEqual({ code: 0, out: "drained\n", err: "" });

    await expect(ask(gate, "/public/after")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    expect([await statusOf(gate, "/livez"), await statusOf(gate, "/startupz")]).toEqual([200, 200]);
    expect(await statusOf(gate, "/readyz")).toBe(503);
    expect((await scrape(gate)).value("sallyport_draining")).toBe(1);
    expect(await drainCommand(gate)).toEqual({ code: 0, out: "drained\n", err: "" });
    expect(gate.exited()).toBe(false);

    expect(await gate.stop()).toBe(0);
    expect(gate.log().filter(({ msg }) => msg === "draining")).toHaveLength(1);
    expect(await logLine(gate, { msg: "stopped" })).toMatchObject({ finished: true });
  });

  it("accepts a URL with or without the path", async () => {
    await using gate = await start("0s", "5s");
    const origin = `http://127.0.0.1:${gate.adminPort}`;
    const drained = { code: 0, out: "drained\n", err: "" };
    for (const url of [origin, `${origin}/`, `${origin}/-/drain`]) {
      expect(await command(["drain", "--url", url])).toEqual(drained);
    }
    const { code, err } = await command(["drain", "--url", `${origin}/livez`]);
    expect([code, err]).toEqual([1, `sallyport drain: ${origin}/livez says 405\n`]);
  });

  it("fails when the drain takes longer than --timeout", async () => {
    await using gate = await start("60s", "30s");
    const { code, out } = await drainCommand(gate, "--timeout", "200ms");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(await statusOf(gate, "/readyz")).toBe(503);
  });

  it("succeeds when the proxy exits meanwhile, and fails when there is none", async () => {
    await using gate = await start("400ms", "5s");
    const draining = drainCommand(gate);
    await until(async () => (await statusOf(gate, "/readyz")) === 503);
    expect(await gate.stop()).toBe(0);
    expect((await draining).code).toBe(0);
    const { code, err } = await drainCommand(gate);
    expect(code).toBe(1);
    expect(err).toContain("ECONNREFUSED");
  });

  it.each([
    ["--timeout", "30"],
    ["--url", "https://127.0.0.1/-/drain"],
  ])("%s %s is a usage error", async (...args) => {
    expect((await command(["drain", ...args])).code).toBe(2);
  });
});

describe("SIGTERM during a drain", () => {
  it("continues the drain", async () => {
    await using gate = await start("2s", "30s");
    const { status, body } = await ask({ port: gate.adminPort }, "/-/drain", { method: "POST" });
    expect([status, fieldsOf({ body })]).toEqual([
      202,
      { id: expect.any(Number), message: expect.any(String), state: "draining", success: true },
    ]);
    gate.signal("SIGTERM");
    expect((await ask(gate, "/public/during")).status).toBe(200);
    expect(await gate.exit).toBe(0);
    expect(gate.log().filter(({ msg }) => msg === "draining")).toHaveLength(1);
    expect(gate.log().some(({ msg }) => msg === "second signal: exiting now")).toBe(false);
  });
});

describe("unauthorized requests", () => {
  it("from peers that are not allowed, and from web pages, change nothing", async () => {
    await using strangers = await start("0s", "5s", { admin: { allow: ["192.0.2.0/24"] } });
    await using gate = await start("0s", "5s");
    expect((await drainCommand(strangers)).err).toContain("403");
    for (const headers of [
      { origin: "http://localhost:9464" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
    ]) {
      const question = { method: "POST", headers };
      expect((await ask({ port: gate.adminPort }, "/-/drain", question)).status).toBe(403);
    }
    expect((await ask({ port: gate.adminPort }, "/-/drain")).status).toBe(200);
    expect(await statusOf(strangers, "/readyz")).toBe(200);
    expect(await statusOf(gate, "/readyz")).toBe(200);
  });
});

describe("keep-alive connections", () => {
  it("get Connection: close with responses that begin during the drain", async () => {
    await using holding = await startHoldingBackend();
    await using gate = await start("10s", "5s", { target: holding.url });
    const agent = new Agent({ keepAlive: true });
    const running = ask(gate, "/public/hold/x", { agent });
    await until(() => holding.held().length === 1);
    await ask({ port: gate.adminPort }, "/-/drain", { method: "POST" });
    holding.release("/public/hold/x");
    expect((await running).headers.connection).toBe("close");
    agent.destroy();
  });

  it("do not delay the drain after their last request", async () => {
    await using gate = await start("0s", "60s");
    const agent = new Agent({ keepAlive: true });
    const before = backend.listeners();
    const running = ask(gate, "/public/sse", { agent });
    await until(() => backend.listeners() === before + 1);
    const stopped = gate.stop();
    await until(async () => (await statusOf(gate, "/readyz")) === 503);
    backend.emitEvent(undefined);
    expect(await running).toMatchObject({ status: 200 });
    expect(await stopped).toBe(0);
    expect(await logLine(gate, { msg: "stopped" })).toMatchObject({ finished: true });
    agent.destroy();
  });
});
