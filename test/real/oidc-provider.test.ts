/** A real identity provider: discovery, key rotation under load, an outage with a restart, introspection. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { newKey, type OidcIssuer, ORDERS, startIssuer } from "./oidc-issuer.ts";

const OPAQUE = "https://opaque.example.com";

const stack = new AsyncDisposableStack();
const keys = [newKey("first"), newKey("second"), newKey("third")] as const;
let provider: OidcIssuer;
let backend: EchoBackend;
let directory: TemporaryDirectory;
beforeAll(async () => {
  provider = stack.use(await startIssuer(keys[0]));
  backend = stack.use(await startEchoBackend());
  directory = stack.use(await temporaryDirectory());
});
afterAll(() => stack.disposeAsync());

function start(): Promise<Sallyport> {
  const { issuer, client } = provider;
  const introspection = {
    url: `${issuer}/token/introspection`,
    clientId: client.id,
    clientSecret: client.secret,
    cache: "1s",
  };
  return startSallyport({
    target: backend.url,
    config: {
      tokens: {
        trusted: [
          {
            issuer,
            audience: ORDERS,
            algorithms: ["ES256"],
            discovery: true,
            jwks: { cacheFile: join(directory.path, "keys.json") },
          },
          { issuer: "opaque", introspection, claims: { subject: "client_id" } },
        ],
      },
    },
  });
}

describe("oidc-provider", () => {
  test("its JWTs are accepted with discovery, and its keys rotate under load without a 401", async () => {
    await using gate = await start();
    const statuses: number[] = [];
    const over = new AbortController();
    const load = Array.from({ length: 4 }, async () => {
      while (!over.signal.aborted) {
        const token = await provider.tokenFor(ORDERS);
        statuses.push((await ask(gate, "/x", { token })).status);
      }
    });
    const signers: string[] = [];
    // Each key signs at once, although no client has seen its public key: a provider should not do this.
    for (const next of [keys[1], keys[2]]) {
      await sleep(8_000);
      provider.rotate(next, keys[0]);
      signers.push(next.kid);
    }
    await sleep(2_000);
    over.abort();
    await Promise.all(load);
    expect(signers).toEqual(["second", "third"]);
    expect(statuses.length).toBeGreaterThan(50);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const echoed = echoedBy(await ask(gate, "/x", { token: await provider.tokenFor(ORDERS) }));
    expect(echoed.header("x-auth-subject")).toBe(provider.client.id);
    expect(echoed.header("x-auth-issuer")).toBe(provider.issuer);
  }, 60_000);

  test("its opaque tokens are introspected, and refused once revoked", async () => {
    await using gate = await start();
    const token = await provider.tokenFor(OPAQUE);
    expect(token).not.toContain(".");
    const answer = await ask(gate, "/x", { token });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBe(provider.client.id);
    expect(echoedBy(answer).header("x-auth-issuer")).toBe("opaque");
    expect((await ask(gate, "/x", { token: `${token}x` })).status).toBe(401);
    expect((await provider.post("/token/revocation", { token })).status).toBe(200);
    await until(async () => (await ask(gate, "/x", { token })).status === 401);
  }, 30_000);

  test("while it is down, its JWTs are accepted, even after a restart; opaque tokens get 503", async () => {
    const tokens = await Promise.all(Array.from({ length: 40 }, () => provider.tokenFor(ORDERS)));
    const opaque = await provider.tokenFor(OPAQUE);
    const statusesOf = async (gate: Sallyport, these: readonly string[]): Promise<Set<number>> =>
      new Set(
        await Promise.all(these.map(async (token) => (await ask(gate, "/x", { token })).status)),
      );
    {
      await using gate = await start();
      expect(await statusesOf(gate, tokens.slice(0, 5))).toEqual(new Set([200]));
      await until(() => readFile(join(directory.path, "keys.json")).then(Boolean, () => false));
      await provider.stop();
      expect(await statusesOf(gate, tokens.slice(5, 20))).toEqual(new Set([200]));
    }
    await using gate = await start();
    expect(await statusesOf(gate, tokens)).toEqual(new Set([200]));
    expect(await statusesOf(gate, [opaque])).toEqual(new Set([503]));
    await provider.start();
    expect(await statusesOf(gate, [opaque])).toEqual(new Set([200]));
  }, 60_000);
});
