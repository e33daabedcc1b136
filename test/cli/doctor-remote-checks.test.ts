import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { closedPort } from "../support/dead-ends.ts";
import { startRemoteServer } from "../support/remote-server.ts";
import { command } from "./command.ts";
import { deployment } from "./deployment.ts";

test("introspection and authorization servers are probed without real callers, and problems are reported", async () => {
  const server = await startRemoteServer(({ url }) => {
    if (url.startsWith("/introspect")) return { body: { active: false } };
    if (url.startsWith("/refuses")) return { status: 401 };
    if (url.startsWith("/policy")) return { status: 403 };
    if (url.includes("tokenreviews")) return { status: 201, body: { status: {} } };
    return { status: 403 };
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const shipped = await deployment();
  const credentials = { clientId: "sallyport", clientSecret: "hunter22" };
  const gone = `http://127.0.0.1:${await closedPort()}`;
  await shipped.write(
    "config.yaml",
    JSON.stringify({
      server: { listen: "127.0.0.1:0", tls: { certFile: "tls.crt", keyFile: "tls.key" } },
      admin: { listen: "127.0.0.1:0" },
      upstreams: { app: { targets: ["http://127.0.0.1:9"] } },
      routes: [{ name: "all", path: "/", upstream: "app", authorize: "policy" }],
      tokens: {
        trusted: [
          { issuer: "good", introspection: { url: `${server.url}/introspect`, ...credentials } },
          { issuer: "secret", introspection: { url: `${server.url}/refuses`, ...credentials } },
          { issuer: "cluster", tokenReview: { apiServer: server.url, audiences: ["orders"] } },
          { issuer: "gone", tokenReview: { apiServer: gone, audiences: ["orders"] } },
        ],
      },
      authorization: {
        rbac: { kind: "subjectAccessReview", apiServer: server.url },
        policy: { kind: "http", url: `${server.url}/policy` },
      },
    }),
  );
  const config = ["--config", join(shipped.directory, "config.yaml")];
  const { code, out } = await command(["doctor", ...config, "--format", "json"]);
  const { groups } = JSON.parse(out) as {
    groups: { name: string; findings: { result: string; message: string; hint?: string }[] }[];
  };
  const findings = groups.find(({ name }) => name === "remote checks")?.findings ?? [];
  const found = (label: string) =>
    findings.filter(({ message }) => message.startsWith(`${label}: `)).at(-1);
  expect(code).toBe(1);
  const answers = expect.stringMatching(/: answers in \d+ ms$/) as string;
  expect(found("introspection good")).toMatchObject({ result: "good", message: answers });
  expect(found("http policy")).toMatchObject({ result: "good", message: answers });
  expect(found("tokenReview cluster")).toMatchObject({ result: "good", message: answers });
  expect(found("introspection secret")).toMatchObject({
    result: "bad",
    message: "introspection secret: is unavailable (status 401)",
    hint: expect.stringContaining("clientSecret") as string,
  });
  expect(found("subjectAccessReview rbac")).toMatchObject({
    result: "bad",
    message: "subjectAccessReview rbac: is unavailable (status 403)",
    hint: expect.stringContaining("system:auth-delegator") as string,
  });
  expect(found("tokenReview gone")).toMatchObject({
    result: "bad",
    message: "tokenReview gone: no connection (ECONNREFUSED)",
  });
  expect(out).not.toContain("hunter22");
});
