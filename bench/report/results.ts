import type { Machine } from "../machine/programs.ts";
import type { PeerName } from "../peers.ts";
import type { FigureName } from "./figures.ts";

/** The result of one peer in one variant of a scenario. */
export interface Row {
  readonly scenario: string;
  /** "plain", "TLS download", …: the peers of one variant were measured in alternation. */
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

/** All results of one run. */
export interface Results {
  readonly date: string;
  readonly revision: string;
  readonly machine: Machine;
  /** Whether proxies had a separate core in the scenarios that provide one; otherwise all programs shared all cores. */
  readonly divided: boolean;
  /** Versions of the packages of the Node stacks. */
  readonly packages: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly seconds: number;
  readonly absent: readonly Absence[];
  readonly rows: readonly Row[];
}
