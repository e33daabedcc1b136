import type { Change } from "../core/change.ts";
import { ConfigError } from "../core/config-problem.ts";
import type { Metrics } from "../observe/metrics.ts";
import { seriesOf } from "./from-configuration.ts";
import type { FromThread, ToThread } from "./thread-messages.ts";
import type { Traffic } from "./traffic.ts";

/** A configuration on its way: the main thread says when, so that all threads change or none. */
export class PreparedChange {
  readonly #traffic: Traffic;
  readonly #metrics: Metrics;
  readonly #post: (message: FromThread) => void;
  #preparing: Promise<Change | undefined> = Promise.resolve(undefined);

  constructor(traffic: Traffic, metrics: Metrics, post: (message: FromThread) => void) {
    this.#traffic = traffic;
    this.#metrics = metrics;
    this.#post = post;
  }

  prepare(changed: Extract<ToThread, { kind: "prepare" }>): void {
    this.#preparing = this.#traffic.prepare(changed).then(
      ({ commit, drop }) => {
        this.#post({ kind: "prepared", fault: undefined });
        const withSeries = (): Promise<void> => {
          this.#metrics.add(seriesOf(changed.configuration));
          return commit();
        };
        return { commit: withSeries, drop };
      },
      (error: unknown) => {
        const problems = error instanceof ConfigError ? error.problems : [];
        this.#post({ kind: "prepared", fault: { message: String(error), problems } });
        return undefined;
      },
    );
  }

  commit(): void {
    void this.#take()
      .then((change) => change?.commit())
      .then(() => this.#post({ kind: "committed" }));
  }

  drop(): void {
    void this.#take().then((change) => change?.drop());
  }

  /** Each but once. */
  #take(): Promise<Change | undefined> {
    const taken = this.#preparing;
    this.#preparing = Promise.resolve(undefined);
    return taken;
  }
}
