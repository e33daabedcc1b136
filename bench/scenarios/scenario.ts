import type { PeerName } from "../peers.ts";
import type { Row } from "../report/results.ts";
import type { Setting } from "../setting/setting.ts";

/** What a scenario has to work with. */
export interface Bench {
  readonly setting: Setting;
  /** Who takes part: asked for, and present on this machine. */
  readonly peers: readonly PeerName[];
  readonly rounds: number;
  /** How long one measurement lasts. */
  readonly seconds: number;
  /** Tells a person how far it is. */
  say(text: string): void;
}

export interface Scenario {
  readonly title: string;
  run(bench: Bench): Promise<readonly Row[]>;
}
