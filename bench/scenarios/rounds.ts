import type { PeerName } from "../peers.ts";
import { FIGURE_NAMES, type FigureName } from "../report/figures.ts";
import type { Row } from "../report/results.ts";

export type Figures = Partial<Record<FigureName, number>>;

/** A proxy that is measured in alternation with others. */
export interface Contender {
  readonly peer: PeerName;
  readonly variant: string;
  /** Makes one measurement. An error makes the row void. */
  measure(): Promise<Figures>;
}

/**
 * Measures all in alternation, starting with a different one in each round, so that a machine that slows down or has other
 * work affects all alike. One that fails is not measured again.
 */
export async function inTurns(
  scenario: string,
  contenders: readonly Contender[],
  rounds: number,
  say: (text: string) => void,
): Promise<readonly Row[]> {
  const found = new Map<Contender, Figures[]>(contenders.map((contender) => [contender, []]));
  const failed = new Map<Contender, string>();
  for (let round = 0; round < rounds; round++) {
    const first = round % Math.max(1, contenders.length);
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      if (failed.has(contender)) continue;
      const { peer, variant } = contender;
      say(`${scenario}, ${variant}: ${peer}, round ${round + 1} of ${rounds}`);
      try {
        found.get(contender)?.push(await contender.measure());
      } catch (error) {
        failed.set(contender, messageOf(error));
      }
    }
  }
  return contenders.map((contender) => {
    const { peer, variant } = contender;
    const why = failed.get(contender);
    if (why !== undefined) return voidRow(scenario, variant, peer, why);
    return { scenario, variant, peer, rounds: collected(found.get(contender) ?? []) };
  });
}

export function voidRow(scenario: string, variant: string, peer: PeerName, why: string): Row {
  return { scenario, variant, peer, rounds: {}, void: why };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function collected(rounds: readonly Figures[]): Row["rounds"] {
  return Object.fromEntries(
    FIGURE_NAMES.map((name) => [
      name,
      rounds.map((figures) => figures[name]).filter((value) => value !== undefined),
    ]).filter(([, values]) => values?.length !== 0),
  );
}
