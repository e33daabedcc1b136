import { EXIT } from "../command.ts";

/** How long a start may take after the signal, in milliseconds. */
const START_MS = 5_000;

/**
 * The request to stop, remembered from before the configuration is read. Without a listener, a signal would end a process
 * whose first threads already serve clients, or, in a container whose process 1 this is, get lost. That still happens while
 * the modules are loaded, before the command runs.
 */
export class StopSignal {
  readonly #received: Promise<NodeJS.Signals>;
  /** Called for each further signal. */
  again: (signal: NodeJS.Signals) => void = () => process.exit(EXIT.failed);
  #starting: NodeJS.Timeout | undefined;

  /** @param signals by default also SIGQUIT, with which nginx is asked to finish its requests. */
  constructor(signals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT", "SIGQUIT"]) {
    const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
    this.#received = promise;
    let isFirst = true;
    const onSignal = (signal: NodeJS.Signals): void => {
      if (!isFirst) return this.again(signal);
      isFirst = false;
      this.#starting = setTimeout(() => process.exit(EXIT.failed), START_MS).unref();
      resolve(signal);
    };
    for (const signal of signals) process.on(signal, onSignal);
  }

  /** Waits for the first signal. Called once everything has started. */
  async wait(): Promise<NodeJS.Signals> {
    const signal = await this.#received;
    clearTimeout(this.#starting);
    return signal;
  }
}
