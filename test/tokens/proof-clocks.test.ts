/**
 * Replicas whose clocks differ share proofs. Each accepts a proof by its own clock: what one of them has accepted must be remembered for as
 * long as another one would accept it, or whoever saw it can replay it there.
 */
import { expect, test } from "vitest";
import { BoundToken } from "../../src/core/request/bound-token.ts";
import type { RememberProof } from "../../src/core/shared-parts.ts";
import { LoopBudget } from "../../src/lib/async/loop-budget.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createProofMemory, UsedProofs } from "../../src/tokens/proofs/proof-memory.ts";
import { Proofs } from "../../src/tokens/proofs/proofs.ts";
import { identityWith } from "../support/permit.ts";
import { clientKey, proofBy } from "../support/proofs.ts";

const HTU = "https://api.example.com/";

test("a replica whose clock is seconds behind accepts no proof that another one has forgotten", async () => {
  let now = Date.now();
  const ends = new Map<string, number>();
  const remember: RememberProof = async (name, forMs) => {
    if ((ends.get(name) ?? 0) > now) return false;
    ends.set(name, now + forMs);
    return true;
  };
  /** @param aheadMs how far its clock is ahead. */
  const replica = (aheadMs: number): Proofs => {
    const clock = { ...systemClock, now: () => now + aheadMs };
    return new Proofs({
      keys: { signing: undefined },
      remember,
      clock,
      used: new UsedProofs(createProofMemory(1, clock.now())),
      budget: new LoopBudget(systemClock, Infinity),
      loginBudget: new LoopBudget(systemClock, Infinity),
    });
  };
  const key = await clientKey();
  const proof = proofBy(key, {
    htu: HTU,
    claims: { ath: "digest", iat: Math.floor(now / 1000) },
  });
  const caller = identityWith();
  const token = new BoundToken(caller, { jkt: key.jkt, x5t: undefined }, "digest", caller);
  const sendTo = async (proofs: Proofs): Promise<string> => {
    const verdict = await proofs.prove(token, {
      sent: [proof],
      method: "GET",
      isTarget: (url) => url === HTU,
      certificate: undefined,
      isDpop: true,
      earlier: undefined,
      dryRun: false,
    });
    return "reason" in verdict ? verdict.reason : "accepted";
  };
  const [ahead, behind] = [replica(2_000), replica(-2_000)];
  expect(await sendTo(ahead)).toBe("accepted");
  now += 59_500;
  expect(await sendTo(behind)).toBe("proof_replayed");
});
