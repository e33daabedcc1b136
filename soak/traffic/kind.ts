import type { Ledger } from "../accounts/ledger.ts";
import type { Deployment } from "../deployment/deployment.ts";
import type { Dice } from "../dice.ts";
import type { Client } from "./client.ts";
import type { Tokens } from "./tokens.ts";

/** What a piece of traffic has to work with. */
export interface World {
  readonly deployment: Deployment;
  readonly client: Client;
  readonly ledger: Ledger;
  readonly dice: Dice;
  readonly tokens: Tokens;
}

/** One kind of traffic. */
export interface Kind {
  /** How often it comes, beside the others. */
  readonly weight: number;
  /** Runs it once. Never rejects: what goes wrong is told to the ledger. */
  readonly run: (world: World, kind: string) => Promise<unknown>;
}
