import type { PeerName } from "../peers.ts";
import type { Row } from "../report/results.ts";
import type { Setting } from "../setting/setting.ts";

/** The input of a scenario. */
export interface Bench {
  readonly setting: Setting;
  /** The peers that take part: requested, and installed on this machine. */
  readonly peers: readonly PeerName[];
  readonly rounds: number;
  /** The length of one measurement. */
  readonly seconds: number;
  /** Reports progress to the user. */
  say(text: string): void;
}

export interface Scenario {
  readonly title: string;
  run(bench: Bench): Promise<readonly Row[]>;
}
