/** `/-/explain` uses the configuration and keys in force, not the files as they are now. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Explanation } from "../../src/core/explanation.ts";
import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { editConfiguration, replaceFile } from "../support/edits.ts";
import { signingPair, signToken, startKeySetServer } from "../support/foreign-keys.ts";
import { type LogLine, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

async function explained(
  gate: Sallyport,
  url: string,
  token: string,
  method = "GET",
): Promise<Explanation> {
  const page = `/-/explain?url=${url}&method=${method}`;
  const answer = await ask({ port: gate.adminPort }, page, { token });
  expect(answer.status, answer.body).toBe(200);
  return JSON.parse(answer.body) as Explanation;
}

it.each([1, 2])(
  "with %i worker(s): broken key sets change nothing, and a reload takes effect",
  { timeout: 60_000 },
  async (workers) => {
    const [one, two] = [signingPair("one"), signingPair("two")];
    await using backend = await startEchoBackend();
    await using provider = await startKeySetServer(() => [one.jwk]);
    const trust = { audience: "us", algorithms: ["ES256"] };
    await using gate = await startSallyport({
      withoutToken: true,
      target: backend.url,
      files: { "jwks.json": JSON.stringify({ keys: [two.jwk] }) },
      config: {
        server: { workers },
        tokens: {
          trusted: [
            { ...trust, issuer: "address", jwks: { url: provider.url } },
            { ...trust, issuer: "file", jwks: { file: "jwks.json" } },
          ],
        },
      },
    });
    const exp = Math.floor(Date.now() / 1000) + 600;
    const times = { aud: "us", sub: "zoe", exp };
    const tokens = [
      await signToken(one, { ...times, iss: "address" }),
      await signToken(two, { ...times, iss: "file" }),
    ];
    const isForwarded = async (token: string): Promise<boolean> =>
      (await ask(gate, "/x", { token })).status === 200 &&
      (await explained(gate, "/x", token)).verdict.outcome === "forwarded";
    const loaded = "the keys of a trusted issuer were loaded";
    const isLoaded = ({ msg, issuer }: LogLine): boolean => msg === loaded && issuer === "address";
    await until(() => gate.log().filter(isLoaded).length === workers);
    for (const token of tokens) await until(() => isForwarded(token));

    const again = { name: "again", path: "/again", auth: "none", upstream: "app" };
    await provider.close();
    await editConfiguration(gate, (config) => {
      config.routes.push(again);
      Object.assign(config["tokens"] ?? {}, { maxBytes: "4KiB" });
    });
    const reloaded = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect(reloaded.status, reloaded.body).toBe(200);
    await replaceFile(gate, "jwks.json", "broken");
    await until(() =>
      gate.log().some(({ issuer, reason }) => issuer === "file" && reason !== undefined),
    );
    await rm(join(gate.directory, "jwks.json"));

    for (const token of tokens) {
      expect((await ask(gate, "/x", { token })).status).toBe(200);
      const { verdict } = await explained(gate, "/x", token);
      expect(verdict).toMatchObject({ outcome: "forwarded", route: "everything" });
    }
    expect((await explained(gate, "/again", "")).verdict.route).toBe("again");
  },
);

it("leaves no trace: a token that is only explained is not counted", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({ target: backend.url });
  const counted = async (): Promise<string[]> => {
    const { body } = await ask({ port: gate.adminPort }, "/metrics");
    return body
      .split("\n")
      .filter((line) => line.startsWith("sallyport_token_cache_requests_total"));
  };
  const before = await counted();
  expect(before).not.toEqual([]);
  expect((await explained(gate, "/x", gate.token)).token?.accepted).toBe(true);
  expect(await counted()).toEqual(before);
  await ask(gate, "/x", { token: gate.token });
  expect(await counted()).not.toEqual(before);
});

it("does not say of a revoked token that it is not, where a logout accepts it", async () => {
  await using backend = await startEchoBackend();
  const config = { tokens: { revocation: { logout: true } } };
  await using gate = await startSallyport({ target: backend.url, config });
  const logout = { method: "POST", token: gate.token } as const;
  expect((await ask(gate, "/api/logout", logout)).status).toBe(200);
  const { token } = await explained(gate, "/api/logout", gate.token, "POST");
  expect(token?.accepted).toBe(true);
  expect(token?.steps).toContainEqual({ step: "revocation", result: "not reached", detail: "" });
});
