import { createPublicKey } from "node:crypto";
import { jwtVerify } from "jose";
import { expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { ASYMMETRIC_ALGORITHMS } from "../../src/tokens/keys/algorithms.ts";
import { makeKey } from "../../src/tokens/keys/key-making.ts";
import {
  OpenIdProvider,
  type ProviderSettings,
} from "../../src/tokens/providers/openid-provider.ts";
import { type SigningPair, signingPair, signToken } from "../support/foreign-keys.ts";
import { CLIENT_ID, startScriptedProvider } from "../support/scripted-provider.ts";

async function opened(settings: Partial<ProviderSettings> = {}, clock: Clock = systemClock) {
  const scripted = await startScriptedProvider({ sub: "ann" });
  const failures: string[] = [];
  const client = new OpenIdProvider(
    {
      issuer: scripted.issuer,
      clientId: CLIENT_ID,
      clientKey: undefined,
      scopes: ["openid"],
      claims: {},
      needed: [],
      ...settings,
    },
    (reason) => failures.push(reason),
    clock,
  );
  onTestFinished(async () => {
    client.close();
    await scripted[Symbol.asyncDispose]();
  });
  return { scripted, client, failures };
}

const logoutToken = (issuer: string, pair: SigningPair): Promise<string> => {
  const iat = Math.floor(Date.now() / 1_000);
  const events = { "http://schemas.openid.net/event/backchannel-logout": {} };
  return signToken(pair, { iss: issuer, aud: CLIENT_ID, iat, jti: "j", sid: "s-1", events });
};

test("a logout token may be signed with a new key, for which the keys are fetched twice a minute at most", async () => {
  let time = 1_000;
  const clock = { now: () => Date.now(), monotonic: () => time };
  const { scripted, client, failures } = await opened({}, clock);
  let published: readonly object[] = [scripted.pair.jwk];
  let fetches = 0;
  let status = 200;
  scripted.script.answer = (path, response) => {
    if (path !== "/jwks") return false;
    fetches += 1;
    response.writeHead(status).end(JSON.stringify({ keys: published }));
    return true;
  };
  const ended = async (pair: SigningPair) =>
    client.sessionsEndedBy(await logoutToken(scripted.issuer, pair));
  expect(await ended(scripted.pair)).toMatchObject({ sid: "s-1", sub: undefined });
  const next = signingPair("next");
  published = [scripted.pair.jwk, next.jwk];
  await expect(ended(next)).rejects.toMatchObject({ code: "sign_in_failed" });
  expect(fetches).toBe(1);
  time += 30_000;
  const together = await Promise.all([ended(next), ended(next), ended(next)]);
  expect(together).toMatchObject([{ sid: "s-1" }, { sid: "s-1" }, { sid: "s-1" }]);
  expect(fetches).toBe(2);
  // A key that the provider no longer publishes counts for ten minutes.
  published = [next.jwk];
  time += 599_000;
  expect(await ended(scripted.pair)).toMatchObject({ sid: "s-1" });
  time += 1_000;
  await expect(ended(scripted.pair)).rejects.toMatchObject({ code: "sign_in_failed" });
  expect([fetches, failures]).toEqual([3, []]);
  time += 600_000;
  status = 500;
  await expect(ended(next)).rejects.toMatchObject({ code: "provider_unavailable" });
  expect(failures).toEqual(["status 500"]);
  // Strangers can make up logout tokens, and must not have a provider in trouble asked for each.
  await expect(ended(next)).rejects.toMatchObject({ code: "provider_unavailable" });
  expect(fetches).toBe(4);
  time += 1_000;
  status = 200;
  expect(await ended(next)).toMatchObject({ sid: "s-1" });
});

test("what a provider sends instead of JSON is not quoted", async () => {
  const { scripted, client, failures } = await opened();
  scripted.script.answer = (_path, response) => {
    response.writeHead(200, { "content-type": "application/json" }).end('{"issuer": pass-word}');
    return true;
  };
  const begun = client.begin("https://app.example.com/back", "0");
  await expect(begun).rejects.toMatchObject({ code: "provider_unavailable" });
  expect(failures).toEqual(["discovery failed: it sends no valid JSON"]);
});

test.each(ASYMMETRIC_ALGORITHMS)("a key for %s identifies us to a provider", async (algorithm) => {
  const key = makeKey(algorithm, 2048);
  const { scripted, client } = await opened({ clientKey: { key, algorithm } });
  const { location, ...secrets } = await client.begin("https://app.example.com/back", "0");
  const claims = await client.finish(new URL(scripted.consent(location)), secrets, "192.0.2.1");
  expect(claims["sub"]).toBe("ann");
  const assertion = scripted.exchanges[0]?.form.get("client_assertion") ?? "";
  const { payload, protectedHeader } = await jwtVerify(assertion, createPublicKey(key));
  expect(payload).toMatchObject({ iss: CLIENT_ID, sub: CLIENT_ID });
  // RFC 9864 calls it so.
  expect(protectedHeader.alg).toBe(algorithm === "EdDSA" ? "Ed25519" : algorithm);
});
