import type {
  RateSpending,
  RequestsInFlight,
  SettleConcurrency,
  SettleRates,
} from "../core/shared-parts.ts";
import { textsOf } from "./event-reader.ts";
import { SETTLE, SETTLE_CONCURRENCY } from "./scripts.ts";
import type { StateConnection } from "./state-connection.ts";
import type { StateKeys } from "./state-keys.ts";

/** Keys per question to the server. */
const AT_ONCE = 200;

export interface SettlingOptions {
  readonly keys: StateKeys;
  /** The mark of this replica's own counts. */
  readonly own: string;
  readonly digest: (text: string) => string;
  /** Returns the connection to the server; undefined while there is none. */
  readonly commands: () => StateConnection | undefined;
  readonly measured: <Answer>(ask: () => Promise<Answer>) => Promise<Answer>;
}

type Ask<Item> = (commands: StateConnection, items: readonly Item[]) => Promise<unknown>;

/** Adds up the counts of all replicas for limits. */
export class Settling {
  readonly #options: SettlingOptions;

  constructor(options: SettlingOptions) {
    this.#options = options;
  }

  readonly rates: SettleRates = (spendings) => this.#inPieces(spendings, this.#askRates);

  readonly concurrency: SettleConcurrency = async (counts) => {
    const elsewhere = await this.#inPieces(counts, this.#askConcurrency);
    return elsewhere?.map((each) => (Number.isSafeInteger(each) && each > 0 ? each : 0));
  };

  readonly #askRates: Ask<RateSpending> = (commands, spendings) => {
    const { keys, digest } = this.#options;
    const names = spendings.map(({ key }) => keys.rate(digest(key)));
    const costs = spendings.map(({ costMs }) => costMs.toFixed(3));
    return commands.run(SETTLE, names, costs);
  };

  readonly #askConcurrency: Ask<RequestsInFlight> = (commands, counts) => {
    const { keys, digest, own } = this.#options;
    const names = counts.flatMap(({ key }) => keys.inFlight(digest(key)));
    const requests = counts.map((each) => String(each.requests));
    return commands.run(SETTLE_CONCURRENCY, names, [own, ...requests]);
  };

  /**
   * Asks in batches.
   *
   * @returns a number for each item, in the same order; undefined if the server gives no valid answer.
   */
  async #inPieces<Item>(
    items: readonly Item[],
    ask: Ask<Item>,
  ): Promise<readonly number[] | undefined> {
    const { commands: connected, measured } = this.#options;
    const numbers: number[] = [];
    for (let start = 0; start < items.length; start += AT_ONCE) {
      const commands = connected();
      if (commands === undefined) return undefined;
      const some = items.slice(start, start + AT_ONCE);
      try {
        numbers.push(...textsOf(await measured(() => ask(commands, some))).map(Number));
      } catch {
        return undefined;
      }
      // With the wrong number of results, some would be assigned to the wrong keys.
      if (numbers.length !== start + some.length) return undefined;
    }
    return numbers;
  }
}
