/** Who revoked, drained or reloaded, and what for whom: one line of the log each, which never holds a token. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { command } from "../cli/command.ts";
import { ask, fieldsOf } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { editConfiguration } from "../support/edits.ts";
import { type LogLine, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const linesOf = (gate: Sallyport, message: string): LogLine[] =>
  gate.log().filter(({ msg }) => msg === message);

/** Waits for the lines, and for a moment longer in which a second one would come. */
async function linesAfter(gate: Sallyport, message: string, count: number): Promise<LogLine[]> {
  await until(() => linesOf(gate, message).length >= count);
  return linesOf(gate, message);
}

function claimsOf(token: string): { readonly jti: string } {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
}

it.each([1, 2])("revocations, %i worker(s)", { timeout: 60_000 }, async (workers) => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { workers }, tokens: { revocation: { logout: true } } },
  });
  const url = `http://127.0.0.1:${gate.adminPort}`;
  const second = await gate.login("alice", "correct horse battery staple");
  const { jti } = claimsOf(second);
  const revoked = "tokens were revoked";
  expect((await command(["token", "revoke", "--url", url, "--subject", "bob"])).code).toBe(0);
  expect((await command(["token", "revoke", "--url", url, "--token", second])).code).toBe(0);
  const before = "2026-01-02T03:04:05Z";
  expect((await command(["token", "revoke", "--url", url, "--before", before])).code).toBe(0);
  const lines = await linesAfter(gate, revoked, 3);
  expect(lines).toMatchObject([
    { level: "info", by: "127.0.0.1", kept: false, revoked: [{ subject: "bob" }] },
    { by: "127.0.0.1", revoked: [{ jti }] },
    { by: "127.0.0.1", revoked: [{ before: "2026-01-02T03:04:05.000Z" }] },
  ]);

  const answer = await ask(gate, "/api/logout", { method: "POST", token: gate.token });
  const [logout] = await linesAfter(gate, "a caller logged out", 1);
  expect(logout).toMatchObject({
    level: "info",
    id: fieldsOf(answer)["id"],
    by: "127.0.0.1",
    subject: "alice",
    revoked: [{ jti: expect.any(String) as unknown }],
  });
  // A second logout of the same token revokes nothing; neither does a query that is refused.
  await ask(gate, "/api/logout", { method: "POST", token: gate.token });
  await ask({ port: gate.adminPort }, "/-/revoke?nobody=x", { method: "POST" });
  await ask({ port: gate.adminPort }, "/-/revoke?jti=last", { method: "POST" });
  await linesAfter(gate, revoked, 4);
  expect(linesOf(gate, revoked)).toHaveLength(4);
  expect(linesOf(gate, "a caller logged out")).toHaveLength(1);
  for (const token of [gate.token, second]) {
    expect(gate.lines().join("\n")).not.toContain(token.split(".")[2]);
  }
});

it("reloads and drains", { timeout: 60_000 }, async () => {
  await using gate = await startSallyport({ withoutToken: true, target: "http://127.0.0.1:1" });
  const admin = { port: gate.adminPort };
  const reloaded = "the configuration was reloaded";
  await ask(admin, "/-/reload", { method: "POST" });
  expect(await linesAfter(gate, reloaded, 1)).toMatchObject([{ by: "127.0.0.1" }]);
  gate.signal("SIGHUP");
  expect((await linesAfter(gate, reloaded, 2))[1]).toMatchObject({ by: "SIGHUP" });
  await editConfiguration(gate, (config) => {
    config["login"] = { hashing: { queue: 70 } };
  });
  expect((await linesAfter(gate, reloaded, 3))[2]).toMatchObject({
    by: "a changed file",
    changed: ["login.hashing.queue"],
  });
  await rm(join(gate.directory, "config.yaml"));
  const failed = "the configuration was not reloaded";
  expect((await linesAfter(gate, failed, 1))[0]).toMatchObject({ by: "a changed file" });
  await ask(admin, "/-/reload", { method: "POST" });
  expect((await linesAfter(gate, failed, 2))[1]).toMatchObject({ by: "127.0.0.1" });

  await ask(admin, "/-/drain", { method: "POST" });
  await ask(admin, "/-/drain", { method: "POST" });
  const drains = await linesAfter(gate, "asked to drain", 2);
  expect(drains).toMatchObject([
    { level: "info", by: "127.0.0.1" },
    { level: "info", by: "127.0.0.1" },
  ]);
});
