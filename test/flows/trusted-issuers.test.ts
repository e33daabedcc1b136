import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import {
  signingPair,
  signToken,
  startKeySetServer,
  type KeySetServer,
  type SigningPair,
} from "../support/foreign-keys.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

const BY_FILE = "https://file.example.com";
const BY_ADDRESS = "https://address.example.com";
const BROKEN = "https://broken.example.com";
const fileKey = signingPair("in-the-file");
const addressKey = signingPair("at-the-address");
const unknownKey = signingPair("nowhere");

const now = (): number => Math.floor(Date.now() / 1000);
let serial = 0;

/** Signs a different token on every call, so that none is cached. */
function tokenOf(pair: SigningPair, iss: string, more: Record<string, unknown> = {}) {
  serial += 1;
  const times = { iat: now(), exp: now() + 600 };
  return signToken(pair, {
    iss,
    aud: "orders",
    sub: "zoe",
    groups: ["guests"],
    jti: String(serial),
    ...times,
    ...more,
  });
}

let backend: EchoBackend;
let provider: KeySetServer;
let broken: KeySetServer;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  provider = await startKeySetServer(() => [addressKey.jwk]);
  broken = await startKeySetServer(() => undefined);
  const trust = { audience: "orders", algorithms: ["ES256"] };
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    files: { "jwks.json": JSON.stringify({ keys: [fileKey.jwk] }) },
    config: {
      tokens: {
        trusted: [
          { ...trust, issuer: BY_FILE, jwks: { file: "jwks.json" } },
          { ...trust, issuer: BY_ADDRESS, jwks: { url: provider.url }, clockSkew: "0s" },
          { ...trust, issuer: BROKEN, jwks: { url: broken.url } },
        ],
      },
    },
  });
  await until(() => provider.asked() > 0 && broken.asked() > 0);
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), provider.close(), broken.close()]);
});

async function statusOf(token: string): Promise<number> {
  return (await ask(gate, "/x", { token })).status;
}

describe("a token of a trusted issuer", () => {
  it.each([
    ["with keys from a file", fileKey, BY_FILE],
    ["with keys from a URL", addressKey, BY_ADDRESS],
  ])("is accepted, and the backend gets its identity: %s", async (_name, pair, issuer) => {
    const answer = await ask(gate, "/x", { token: await tokenOf(pair, issuer) });
    expect(answer.status).toBe(200);
    const echoed = echoedBy(answer);
    expect(echoed.header("x-auth-subject")).toBe("zoe");
    expect(echoed.header("x-auth-groups")).toBe("guests");
    expect(echoed.header("x-auth-issuer")).toBe(issuer);
  });

  it.each([
    ["another audience", addressKey, BY_ADDRESS, { aud: "sallyport" }],
    ["another issuer's key", fileKey, BY_ADDRESS, {}],
    ["our issuer name", addressKey, "sallyport", { aud: "sallyport" }],
    ["an exp in the past", addressKey, BY_ADDRESS, { exp: now() - 1 }],
  ])("is refused with %s", async (_name, pair, issuer, more) => {
    expect(await statusOf(await tokenOf(pair, issuer, more))).toBe(401);
  });

  it("may be expired by less than the clock skew", async () => {
    expect(await statusOf(await tokenOf(fileKey, BY_FILE, { exp: now() - 5 }))).toBe(200);
  });
});

describe("the source of the keys", () => {
  it("is not requested for every unknown key", async () => {
    const tokens = await Promise.all(
      Array.from({ length: 50 }, () => tokenOf(unknownKey, BY_ADDRESS)),
    );
    const statuses = await Promise.all(tokens.map(statusOf));
    expect(new Set(statuses)).toEqual(new Set([401]));
    // Once at startup, and again only if that was 30 seconds ago.
    expect(provider.asked()).toBeLessThanOrEqual(2);
  });

  it("that has never provided keys leads to 503", async () => {
    const answer = await ask(gate, "/x", { token: await tokenOf(addressKey, BROKEN) });
    expect(answer.status).toBe(503);
    expect(answer.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
    expect(fieldsOf(answer)["success"]).toBe(false);
  });

  it("may become unavailable: the last keys stay in use", async () => {
    await provider.close();
    expect(await statusOf(await tokenOf(addressKey, BY_ADDRESS))).toBe(200);
    expect(await statusOf(await tokenOf(unknownKey, BY_ADDRESS))).toBe(401);
    expect(await statusOf(await tokenOf(addressKey, BY_ADDRESS))).toBe(200);
  });
});
