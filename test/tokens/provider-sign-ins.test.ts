import { expect, onTestFinished, test } from "vitest";
import type { Revocation, RevocationKindName } from "../../src/core/revocation.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { ProviderSignIns } from "../../src/tokens/providers/provider-sign-ins.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { CLIENT_ID, startScriptedProvider } from "../support/scripted-provider.ts";

test("a provider cannot fill the memory or the journal with ended sessions", async () => {
  const provider = await startScriptedProvider({ sub: "u-1" });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  const published: Revocation[] = [];
  const sizes: Partial<Record<RevocationKindName, number>> = { session: 99_999 };
  const signIns = new ProviderSignIns({
    providers: [
      {
        name: "company",
        issuer: provider.issuer,
        clientId: CLIENT_ID,
        clientKey: undefined,
        scopes: ["openid"],
        claims: {},
        needed: [],
        admits: () => true,
        check: {
          cached: () => undefined,
          stale: () => undefined,
          answered: () => undefined,
          failed: () => undefined,
        },
      },
    ],
    issuer: { issue: () => Promise.reject(new Error("nobody signs in")) },
    issuerName: "sallyport",
    lifetimeMs: 3_600_000,
    keys: { signing: undefined, ring: [] },
    publish: async (revocations) => {
      published.push(...revocations);
      return true;
    },
    revocations: { sizeOf: (kind) => sizes[kind] ?? 0 },
    clock: systemClock,
    log: recordedLog(),
  });
  onTestFinished(() => signIns.close());
  await signIns.endSessions("company", await provider.logoutToken({ sid: "s-1" }));
  expect(published).toHaveLength(1);
  // They are kept for a day, not for as long as a token could ever live.
  expect(published[0]?.until).toBeLessThan(Date.now() + 25 * 3_600_000);
  sizes.account = 1;
  const another = signIns.endSessions("company", await provider.logoutToken({ sid: "s-2" }));
  await expect(another).rejects.toMatchObject({ code: "provider_unavailable" });
  expect(published).toHaveLength(1);
});
