import { setTimeout as delay } from "node:timers/promises";
import { createDice } from "../../soak/dice.ts";
import { type Fault, fault } from "../judge/fault.ts";
import { attackByMessages } from "./attack-messages.ts";
import { attackByStreams } from "./attack-streams.ts";
import type { Front, StartFront } from "./front.ts";
import type { Kinds } from "./kinds.ts";
import { startNeighbours } from "./neighbours.ts";
import { type OddBackends, startOddBackends } from "./odd-backends.ts";
import { attackByRevocation, REVOKED_UPLOAD_MS } from "./revoked-upload.ts";
import { hangUp, type Line, type Scene } from "./scene.ts";

export interface StormOptions {
  readonly start: StartFront;
  /** Decides everything that the attackers do, and whether the proxy speaks TLS. */
  readonly seed: number;
  readonly kinds: Kinds;
  /** How long the attackers attack, in milliseconds. */
  readonly lastsMs?: number;
}

/** What happened in a storm. */
export interface StormReport {
  readonly faults: readonly Fault[];
  readonly attacks: number;
  readonly innocent: number;
  /** How long it took, in milliseconds: it ends early if the proxy ends, or logs an error. */
  readonly tookMs: number;
}

const LASTS_MS = 6_000;
const ATTACKERS = 16;
/** The maximum number of attacks of each. */
const ATTACKS = 400;
/** How long after a storm something may be left of it, in milliseconds. */
const CALM_MS = 4_000;
const LOOK_EVERY_MS = 200;
const RELOAD_EVERY_MS = 700;

/** Lets attackers meet odd backends through a proxy, and looks at what their innocent neighbours get, and what is left. */
export async function storm(options: StormOptions): Promise<StormReport> {
  const { start, seed, kinds, lastsMs = LASTS_MS } = options;
  await using backends = await startOddBackends(seed, kinds);
  await using neighbours = await startNeighbours();
  await using front = await start({ ...backends.targets, ...neighbours.targets }, seed % 2 === 1);
  const began = performance.now();
  neighbours.start(front);
  const lines = new Set<Line>();
  const endsAt = began + lastsMs;
  const troubles: string[] = [];
  // What has been found makes the rest of the storm superfluous.
  const over = (): boolean => {
    troubles.push(...front.troubles());
    const found = troubles.length > 0 || backends.outlived.size > 0;
    return found || front.exited() || performance.now() > endsAt;
  };
  const counts = await Promise.all([
    ...Array.from({ length: ATTACKERS }, (_, i) =>
      attack({ front, seed, kinds, lines, over, endsAt }, i),
    ),
    kinds.has("reloads") ? reloading(front, over) : 0,
  ]);
  for (const line of lines) hangUp(line);
  const witness = front.exited() ? undefined : await neighbours.stop();
  const left = front.exited() ? [] : await calm(front, backends);
  troubles.push(...front.troubles());
  return {
    faults: [
      ...troubles.map((text) => fault("trouble", text)),
      ...(witness?.lost ?? []).map((text) => fault("lost", text)),
      ...left,
      ...[...backends.outlived].map((upload) => fault("outlived", `upload ${upload}`)),
    ],
    attacks: counts.reduce((sum, count) => sum + count, 0),
    innocent: witness?.asked ?? 0,
    tookMs: performance.now() - began,
  };
}

interface Raging {
  readonly front: Front;
  readonly seed: number;
  readonly kinds: Kinds;
  readonly lines: Set<Line>;
  readonly over: () => boolean;
  readonly endsAt: number;
}

/** Attacks until the storm is over. @returns how often. */
async function attack(
  { front, seed, kinds, lines, over, endsAt }: Raging,
  attacker: number,
): Promise<number> {
  const from = `127.9.0.${attacker + 1}`;
  let attacks = 0;
  while (!over() && attacks < ATTACKS) {
    const dice = createDice((seed * 1_000 + attacker) * 1_000 + attacks);
    const scene: Scene = { peer: front, dice, kinds, from, lines };
    const ways: (() => Promise<void>)[] = [];
    if (kinds.has("http1")) ways.push(() => attackByMessages(scene));
    if (kinds.has("http2")) ways.push(() => attackByStreams(scene));
    const revokes =
      kinds.has("revocations") &&
      attacker % 4 === 0 &&
      performance.now() + REVOKED_UPLOAD_MS < endsAt;
    if (revokes) ways.push(() => attackByRevocation(scene, front, attacker * ATTACKS + attacks));
    attacks += 1;
    await (ways.length === 0 ? delay(LOOK_EVERY_MS) : dice.pick(ways)());
  }
  return attacks;
}

async function reloading(front: Front, over: () => boolean): Promise<number> {
  let turn = 0;
  while (!over()) {
    await delay(RELOAD_EVERY_MS);
    turn += 1;
    await front.reload(turn);
  }
  return turn;
}

/** Waits until nothing is left of the storm. @returns the faults if there still is when the time is over. */
async function calm(front: Front, backends: OddBackends): Promise<Fault[]> {
  const until = performance.now() + CALM_MS;
  for (;;) {
    const left = await front.left().catch(() => undefined);
    if (front.exited()) return [];
    if (left === undefined) return [fault("stall", "no metrics after a storm")];
    const streams = backends.openStreams();
    if (streams > 0) left.push(`streams at the backend ${streams}`);
    if (left.length === 0) return [];
    if (performance.now() > until) return left.map((text) => fault("left", text));
    await delay(LOOK_EVERY_MS);
  }
}
