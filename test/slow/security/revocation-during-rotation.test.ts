/**
 * The moment between two keys. When signing keys change, every thread checks its cached tokens, and retains those
 * whose key still exists; a revocation that arrives at the same moment must not get lost, nor may a cached token come
 * back together with the key.
 */
import { randomUUID } from "node:crypto";
import { chmod, rename, rm } from "node:fs/promises";
import { Agent } from "node:https";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { byKey, compact } from "../../support/compact-token.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { signingPair } from "../../support/foreign-keys.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { claims, header, OWN } from "../../support/token-gate.ts";

const ROUNDS = 12;

it("a token that is revoked while keys change is refused by every thread from then on", async () => {
  await using backend = await startEchoBackend();
  await using keys = await temporaryDirectory();
  const writeKey = async (name: string, pem: string | Buffer): Promise<void> => {
    await chmod(await keys.write(`.${name}`, pem), 0o600);
    await rename(join(keys.path, `.${name}`), join(keys.path, name));
  };
  await writeKey("own.pem", OWN.privateKey.export({ format: "pem", type: "pkcs8" }));
  await using gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: { server: { workers: 2 }, tokens: { keys: keys.path } },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const statuses = (token: string, more: object = {}): Promise<number[]> =>
    Promise.all(
      Array.from({ length: 8 }, async () => (await ask(gate, "/x", { token, ...more })).status),
    );
  const revoked: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const jti = randomUUID();
    const token = compact(header(), claims({ jti }), byKey(OWN.privateKey));
    // Every thread and every connection has it in its cache.
    expect(new Set(await statuses(token, { agent }))).toEqual(new Set([200]));
    const { privateKey } = signingPair("");
    const pem = privateKey.export({ format: "pem", type: "pkcs8" });
    const changed = round % 2 === 0 ? writeKey("other.pem", pem) : rm(join(keys.path, "other.pem"));
    const reload = round % 3 === 0;
    const [answer] = await Promise.all([
      ask({ port: gate.adminPort }, `/-/revoke?jti=${jti}`, { method: "POST" }),
      changed,
      ...(reload ? [ask({ port: gate.adminPort }, "/-/reload", { method: "POST" })] : []),
      statuses(token, { agent }),
    ]);
    expect(answer?.status).toBe(200);
    revoked.push(token);
    expect(new Set(await statuses(token, { agent }))).toEqual(new Set([401]));
  }
  for (const token of revoked) {
    expect(new Set(await statuses(token))).toEqual(new Set([401]));
  }
  const kept = compact(header(), claims({ jti: randomUUID() }), byKey(OWN.privateKey));
  expect(new Set(await statuses(kept))).toEqual(new Set([200]));
  agent.destroy();
}, 60_000);
