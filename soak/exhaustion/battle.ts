import { setTimeout as delay } from "node:timers/promises";
import type { Attack, Battlefield } from "./attacks/attack.ts";
import { type Counts, startCrowd, together } from "./crowd.ts";
import { type Demands, type Evidence, judge, type Judged } from "./verdict.ts";
import { kernelLosses, lossesBetween } from "./victim/kernel-losses.ts";
import { watchMemory } from "./victim/memory.ts";
import { shippedSettings } from "./victim/shipped-settings.ts";
import { largeTokens, tokenFor } from "./victim/tokens.ts";
import { startBare } from "./victim/bare.ts";
import { startVictim } from "./victim/victim.ts";
import { startWitness } from "./witness/witness.ts";

export interface BattleOptions extends Demands {
  /** The script that is Sallyport. */
  readonly entry: string;
  /** Whether to attack a bare Node server instead. */
  readonly bare: boolean;
  readonly tls: boolean;
  readonly workers: number;
  /** Node flags in addition to those of the image. */
  readonly flags: readonly string[];
  /** The length of the attack. */
  readonly seconds: number;
}

/** Runs one attack against a new Sallyport process. Rejects if it cannot be started. */
export async function battle(attack: Attack, options: BattleOptions): Promise<Judged> {
  const shipped = shippedSettings();
  await using victim = options.bare
    ? await startBare(options)
    : await startVictim({ ...options, shipped });
  const { port, adminPort, ca, pid } = victim;
  const { tls, workers, seconds } = options;
  const [token, witnessToken] = await Promise.all([tokenFor("mallory"), tokenFor("carol")]);
  const field: Battlefield = {
    port,
    adminPort,
    tls,
    token,
    largeTokens,
    connections: Number(shipped.limits["connections"]),
  };
  const orders = await attack.orders(field);
  await using witness = await startWitness({
    port,
    adminPort,
    calmPort: victim.calmPort,
    token: witnessToken,
    ca: tls ? ca : undefined,
    path: attack.slowBackend === true ? "/calm/ok" : "/app/ok",
  });

  const end = new AbortController();
  const lostBefore = kernelLosses();
  const watched = watchMemory(pid, end.signal);
  await using crowds = new AsyncDisposableStack();
  const attackers = orders.map((order) => crowds.use(startCrowd(order)));
  await delay((attack.lead ?? 0) * 1_000);
  await lasting(
    seconds * 1_000,
    () => together(attackers),
    (counts) => attack.bites(counts, field),
  );
  const testimony = await witness.hear();
  end.abort();
  const memory = await watched;
  const counts = together(attackers);
  const evidence: Evidence = {
    name: attack.name,
    tls,
    workers,
    memory,
    testimony,
    counts,
    fills: attack.fills ?? false,
    bit: attack.bites(counts, field),
    ended: victim.ended(),
    losses: lossesBetween(lostBefore, kernelLosses()),
  };
  return judge(evidence, options);
}

/** How often the attackers' progress is checked, in milliseconds. */
const LOOK_MS = 500;

/**
 * Waits for `ms`. On a slow machine, waits up to four times as long until the attack is effective, and up to twice as long
 * while it still makes progress.
 */
async function lasting(
  ms: number,
  counts: () => Counts,
  bites: (counts: Counts) => boolean,
): Promise<void> {
  const began = performance.now();
  let before = counts();
  for (;;) {
    await delay(LOOK_MS);
    const elapsed = performance.now() - began;
    const now = counts();
    const stands = now.sent === before.sent && now.opened === before.opened;
    before = now;
    if (elapsed < ms) continue;
    if (elapsed >= ms * 4 || (bites(now) && (stands || elapsed >= ms * 2))) return;
  }
}
