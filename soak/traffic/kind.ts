import type { Ledger } from "../accounts/ledger.ts";
import type { Deployment } from "../deployment/deployment.ts";
import type { Dice } from "../dice.ts";
import type { Client } from "./client.ts";
import type { Tokens } from "./tokens.ts";

/** The input of a piece of traffic. */
export interface World {
  readonly deployment: Deployment;
  readonly client: Client;
  readonly ledger: Ledger;
  readonly dice: Dice;
  readonly tokens: Tokens;
}

/** One kind of traffic. */
export interface Kind {
  /** Its frequency, relative to the others. */
  readonly weight: number;
  /** Runs it once. Never rejects: failures are reported to the ledger. */
  readonly run: (world: World, kind: string) => Promise<unknown>;
}
