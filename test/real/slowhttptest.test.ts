import { Agent } from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { missing, startProgram } from "../support/program.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    config: { server: { timeouts: { header: "3s", request: "4s" } } },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

/** A client that holds all slots by not reading blocks only itself, so requests from another address are answered. */
const elsewhere = new Agent({ keepAlive: false, localAddress: "127.0.0.9" });
const SECONDS = 8;
const CONNECTIONS = 800;

const noTool = missing("slowhttptest");
describe.skipIf(noTool !== undefined)(`slowhttptest ${noTool ?? ""}`, () => {
  it.each([
    ["slow heads", ["-H", "-i", "1"], "/public/x"],
    ["slow bodies", ["-B", "-i", "1", "-s", "8192"], "/public/x"],
    // Too large to buffer before the request is forwarded, so each occupies a connection to the backend.
    ["slow bodies that are streamed", ["-B", "-i", "1", "-s", "65536"], "/public/x"],
    ["slow reading", ["-X", "-n", "1", "-z", "32", "-k", "3"], "/public/big?bytes=1000000"],
  ])(
    "%s: /readyz and valid requests are answered throughout",
    async (_name, mode, path) => {
      const { port, token } = gate;
      await using attack = startProgram("slowhttptest", [
        ...mode,
        ...["-c", String(CONNECTIONS), "-r", "200", "-l", String(SECONDS), "-p", "3"],
        ...["-u", `https://127.0.0.1:${port}${path}`],
      ]);
      const took: number[] = [];
      while (!attack.exited()) {
        const began = performance.now();
        const [ready, valid] = await Promise.all([
          ask({ port: gate.adminPort }, "/readyz"),
          ask(gate, "/orders", { token, agent: elsewhere }),
        ]);
        took.push(performance.now() - began);
        expect([ready.status, valid.status]).toEqual([200, 200]);
      }
      expect(took.length).toBeGreaterThan(SECONDS);
      expect(Math.max(...took)).toBeLessThan(10_000);
      expect(gate.exited()).toBe(false);
    },
    60_000,
  );
});
