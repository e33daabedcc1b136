import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startLoginServer } from "../credentials/login-server.ts";
import { closedPort } from "../support/dead-ends.ts";
import { command } from "./command.ts";
import { deployment } from "./deployment.ts";

test("a remote user store is queried, and problems are reported", async () => {
  const login = await startLoginServer();
  onTestFinished(() => login[Symbol.asyncDispose]());
  login.instead = (_request, response) => response.writeHead(401).end();
  const shipped = await deployment();
  const url = `postgres://u:hunter22@127.0.0.1:${await closedPort()}/d`;
  await shipped.write(
    "config.yaml",
    JSON.stringify({
      server: { listen: "127.0.0.1:0", tls: { certFile: "tls.crt", keyFile: "tls.key" } },
      admin: { listen: "127.0.0.1:0" },
      upstreams: { app: { targets: ["http://127.0.0.1:9"] } },
      users: [
        { kind: "http", url: login.url },
        { kind: "postgres", url, query: "SELECT $1 AS password_hash" },
      ],
    }),
  );
  const config = ["--config", join(shipped.directory, "config.yaml")];
  const { code, out } = await command(["doctor", ...config, "--format", "json"]);
  const { groups } = JSON.parse(out) as {
    groups: { name: string; findings: { result: string; message: string }[] }[];
  };
  const found = groups.find(({ name }) => name === "user stores")?.findings;
  expect(code).toBe(1);
  expect(found).toMatchObject([
    { result: "good", message: expect.stringMatching(/^http: answers in \d+ ms$/) as string },
    { result: "bad", message: "postgres: is unavailable: ECONNREFUSED" },
  ]);
  expect(out).not.toContain("hunter22");
});
