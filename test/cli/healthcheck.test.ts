import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { listeningPort } from "../support/listening-port.ts";
import { startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { childCommand, command } from "./command.ts";

/** Starts an admin listener that answers `/readyz` with a status, and everything else with 404. */
async function readiness(status: number): Promise<number> {
  const server = createServer((request, response) => {
    response.statusCode = request.url === "/readyz" ? status : 404;
    response.end("x".repeat(100_000));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return listeningPort(server);
}

async function configuration(admin: unknown): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  return directory.write(
    "config.yaml",
    JSON.stringify({
      server: { tls: "off" },
      admin,
      upstreams: { app: { targets: ["http://127.0.0.1:1"] } },
    }),
  );
}

it("distinguishes a running proxy from one that has ended", async () => {
  await using proxy = await startSallyport({ withoutToken: true, target: "http://127.0.0.1:1" });
  const args = ["healthcheck", "--config", join(proxy.directory, "config.yaml")];
  const env = { SALLYPORT_ADMIN__LISTEN: `127.0.0.1:${proxy.adminPort}` };
  expect(await childCommand(args, { env })).toEqual({ code: 0, out: "ready\n", err: "" });
  expect(await proxy.stop()).toBe(0);
  const after = await childCommand(args, { env });
  expect({ code: after.code, out: after.out }).toEqual({ code: 1, out: "" });
  expect(after.err).toContain("ECONNREFUSED");
});

it.each(["0.0.0.0", "127.0.0.1", "localhost"])("reaches a listener on %s", async (host) => {
  const port = await readiness(200);
  const file = await configuration({ listen: `${host}:${port}` });
  expect((await command(["healthcheck", "--config", file])).code).toBe(0);
  expect((await command(["healthcheck"], { SALLYPORT_CONFIG: file })).code).toBe(0);
});

it("fails when the proxy is not ready", async () => {
  const url = `http://127.0.0.1:${await readiness(503)}/readyz`;
  const { code, out, err } = await command(["healthcheck", "--url", url]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("503");
});

it.each(["/readyz", "/", ""])("reads no configuration if it is given a URL: %j", async (path) => {
  const url = `http://127.0.0.1:${await readiness(200)}${path}`;
  const { code } = await command(["healthcheck", "--url", url], { SALLYPORT_CONFIG: "/none" });
  expect(code).toBe(0);
});

it("fails without an admin listener", async () => {
  const { code } = await command(["healthcheck", "--config", await configuration("off")]);
  expect(code).toBe(1);
});

it("a configuration that is named must exist and be valid", async () => {
  expect((await command(["healthcheck"], { SALLYPORT_CONFIG: "/none" })).code).toBe(78);
  expect((await command(["healthcheck", "--config", "/none"])).code).toBe(78);
  const file = await configuration({ listen: 9464 });
  expect((await command(["healthcheck", "--config", file])).code).toBe(78);
});
