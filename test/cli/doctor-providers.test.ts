import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { closedPort } from "../support/dead-ends.ts";
import { startScriptedProvider } from "../support/scripted-provider.ts";
import { command } from "./command.ts";
import { deployment } from "./deployment.ts";

test("sign-in providers are examined, and doctor says what to register there", async () => {
  const [good, other, slash] = [
    await startScriptedProvider({ sub: "ann" }),
    await startScriptedProvider({ sub: "ann" }),
    await startScriptedProvider({ sub: "ann" }),
  ];
  onTestFinished(() => good[Symbol.asyncDispose]());
  onTestFinished(() => other[Symbol.asyncDispose]());
  onTestFinished(() => slash[Symbol.asyncDispose]());
  const realm = `${slash.issuer}/realm`;
  slash.script.answer = (_path, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ issuer: `${realm}/` }));
    return true;
  };
  other.script.document = { issuer: "https://id.example.com/other" };
  const shipped = await deployment();
  const client = { clientId: "sallyport", clientSecret: "c0mpany-secret" };
  await shipped.write(
    "config.yaml",
    JSON.stringify({
      server: { listen: "127.0.0.1:0", tls: { certFile: "tls.crt", keyFile: "tls.key" } },
      admin: { listen: "127.0.0.1:0" },
      upstreams: { app: { targets: ["http://127.0.0.1:9"] } },
      browser: {
        providers: [
          { name: "good", issuer: good.issuer, ...client },
          { name: "other", issuer: other.issuer, ...client },
          { name: "slash", issuer: realm, ...client },
          { name: "gone", issuer: `http://127.0.0.1:${await closedPort()}`, ...client },
        ],
      },
    }),
  );
  const config = ["--config", join(shipped.directory, "config.yaml")];
  const { code, out } = await command(["doctor", ...config]);
  expect(code).toBe(1);
  expect(out).toMatch(/provider good: answers in \d+ ms/);
  expect(out).toContain("register is https://HOST/_sallyport/login/good/callback");
  expect(out).toContain(
    "provider other: is unavailable (discovery failed: the document names another issuer)",
  );
  expect(out).toContain(`the document names another issuer: ${realm}/, not ${realm})`);
  expect(out).toMatch(/provider gone: .*(?:refuse|ECONNREFUSED|connection)/);
  expect(out).not.toContain("c0mpany-secret");
});
