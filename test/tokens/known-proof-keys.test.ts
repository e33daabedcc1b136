/** The keys of clients that are known need no import, and no turn of the event loop. */
import { expect, test } from "vitest";
import { BoundToken } from "../../src/core/request/bound-token.ts";
import { LoopBudget } from "../../src/lib/async/loop-budget.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Proofs } from "../../src/tokens/proofs/proofs.ts";
import { identityWith } from "../support/permit.ts";
import { type ClientKey, clientKey, proofBy } from "../support/proofs.ts";

const HTU = "https://api.example.com/";
const proofs = new Proofs({
  keys: { signing: undefined },
  budget: new LoopBudget(systemClock, Infinity),
  used: undefined,
  remember: undefined,
  clock: systemClock,
});

/** Whether a proof counts at once. */
async function isKnown(key: ClientKey, header = {}): Promise<boolean> {
  const caller = identityWith();
  const token = new BoundToken(caller, { jkt: key.jkt, x5t: undefined }, "digest", caller);
  const verdict = proofs.prove(token, {
    sent: [proofBy(key, { htu: HTU, claims: { ath: "digest" }, header })],
    method: "GET",
    isTarget: (url) => url === HTU,
    certificate: undefined,
    isDpop: true,
    earlier: undefined,
    dryRun: false,
  });
  expect(await verdict).toBe(caller);
  return !(verdict instanceof Promise);
}

test("one who writes the header differently each time makes nobody else's key unknown", async () => {
  const [alice, mallory] = [await clientKey(), await clientKey()];
  expect(await isKnown(alice)).toBe(false);
  expect(await isKnown(alice)).toBe(true);
  for (let i = 0; i < 5_001; i += 1) await isKnown(mallory, { i });
  expect(await isKnown(mallory, { i: 5_000 })).toBe(true);
  expect(await isKnown(alice)).toBe(true);
});
