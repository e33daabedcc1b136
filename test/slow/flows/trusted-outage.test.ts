/** An outage of a key set: tokens with a known key are not refused, even by a process that starts meanwhile. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ask } from "../../support/ask.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { signingPair, signToken, startKeySetServer } from "../../support/foreign-keys.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

const ISSUER = "https://id.example.com";

test("with a cached copy, a start during the outage refuses no token; without one, tokens get 503, never 401", async () => {
  await using backend = await startEchoBackend();
  await using directory = await temporaryDirectory();
  const pair = signingPair("known");
  const provider = await startKeySetServer(() => [pair.jwk]);
  const cacheFile = join(directory.path, "keys.json");
  const start = (more: object, workers: number) =>
    startSallyport({
      target: backend.url,
      config: {
        server: { workers },
        tokens: {
          trusted: [
            {
              issuer: ISSUER,
              audience: "orders",
              algorithms: ["ES256"],
              jwks: { url: provider.url, ...more },
            },
          ],
        },
      },
    });
  let serial = 0;
  const statusAt = async (gate: Awaited<ReturnType<typeof start>>): Promise<number> => {
    serial += 1;
    const exp = Math.floor(Date.now() / 1000) + 600;
    const claims = { iss: ISSUER, aud: "orders", sub: "zoe", jti: String(serial), exp };
    return (await ask(gate, "/x", { token: await signToken(pair, claims) })).status;
  };
  {
    await using gate = await start({ cacheFile }, 1);
    expect(await statusAt(gate)).toBe(200);
    await until(() => readFile(cacheFile).then(Boolean, () => false));
    await provider.close();
    for (let turn = 0; turn < 5; turn += 1) expect(await statusAt(gate)).toBe(200);
  }
  {
    await using gate = await start({ cacheFile }, 2);
    const answers = await Promise.all(Array.from({ length: 20 }, () => statusAt(gate)));
    expect(new Set(answers)).toEqual(new Set([200]));
    await until(async () => {
      const { text } = await scrape(gate);
      return /trusted_keys_fetches_total\{issuer="[^"]+",result="failure"\} [1-9]/.test(text);
    });
    const { text } = await scrape(gate);
    expect(text).toContain(`sallyport_trusted_keys_usable{issuer="${ISSUER}"} 1`);
    expect(text).toMatch(
      /sallyport_trusted_keys_fetched_timestamp_seconds\{issuer="[^"]+"\} 1\d{9}/,
    );
  }
  await using gate = await start({}, 1);
  expect(await statusAt(gate)).toBe(503);
});
