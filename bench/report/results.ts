import type { Machine } from "../machine/programs.ts";
import type { PeerName } from "../peers.ts";
import type { FigureName } from "./figures.ts";

/** What one peer reached in one variant of a scenario. */
export interface Row {
  readonly scenario: string;
  /** "plain", "TLS download", …: rows of one variant were measured in turns. */
  readonly variant: string;
  readonly peer: PeerName;
  /** One value for each round, in the figure's unit. */
  readonly rounds: Readonly<Partial<Record<FigureName, readonly number[]>>>;
  /** Why there are no figures. */
  readonly void?: string;
}

export interface Absence {
  readonly peer: PeerName;
  readonly why: string;
}

/** Everything that one run has found. */
export interface Results {
  readonly date: string;
  readonly revision: string;
  readonly machine: Machine;
  /** Whether a proxy had a core of its own, where it says so; else all shared all. */
  readonly divided: boolean;
  /** Versions of the packages of the Node stacks. */
  readonly packages: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly seconds: number;
  readonly absent: readonly Absence[];
  readonly rows: readonly Row[];
}
