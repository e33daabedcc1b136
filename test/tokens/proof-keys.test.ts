/** The keys of clients that are known need no import, and no turn of the event loop. */
import { expect, test } from "vitest";
import { BoundToken } from "../../src/core/request/bound-token.ts";
import { LoopBudget } from "../../src/lib/async/loop-budget.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Proofs } from "../../src/tokens/proofs/proofs.ts";
import { identityWith } from "../support/permit.ts";
import { type ClientKey, clientKey, proofBy } from "../support/proofs.ts";

const HTU = "https://api.example.com/";

/** @param perTurnMs what signatures may take of a turn of the event loop, in milliseconds. */
function proofsWith(perTurnMs: number): Proofs {
  return new Proofs({
    keys: { signing: undefined },
    budget: new LoopBudget(systemClock, perTurnMs),
    loginBudget: new LoopBudget(systemClock, perTurnMs),
    used: undefined,
    remember: undefined,
    clock: systemClock,
  });
}

const proofs = proofsWith(Infinity);
const turned = proofsWith(0.2);

/** Whether a proof counts at once. */
async function isKnown(proofs: Proofs, key: ClientKey, header = {}): Promise<boolean> {
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
  expect(await isKnown(proofs, alice)).toBe(false);
  expect(await isKnown(proofs, alice)).toBe(true);
  for (let i = 0; i < 5_001; i += 1) await isKnown(proofs, mallory, { i });
  expect(await isKnown(proofs, mallory, { i: 5_000 })).toBe(true);
  expect(await isKnown(proofs, alice)).toBe(true);
});

test("a new key waits for no login of strangers", async () => {
  const alice = await clientKey();
  let refused = 0;
  const logins = Array.from({ length: 500 }, async () => {
    const sent = [proofBy(alice, { htu: HTU, htm: "POST", signer: () => Buffer.alloc(64, 1) })];
    const isTarget = (): boolean => true;
    const found = await turned.proveKey({ sent, method: "POST", isTarget, certificate: undefined });
    if ("reason" in found) refused += 1;
  });
  expect(await isKnown(turned, alice)).toBe(false);
  expect(refused).toBeLessThan(250);
  await Promise.all(logins);
  expect(refused).toBe(500);
});
