/** Where a job comes from. */
export interface JobOrigin {
  readonly network: string;
  /** Recent failures of the network. */
  readonly failures: number;
}

interface Network<Job> {
  /** Oldest first, never empty. */
  readonly jobs: Job[];
  failures: number;
}

/**
 * A fair queue: networks take turns in round-robin order, however many jobs each one has. A network with a single job
 * waits for at most one job of every other network. The weight of a network is its number of waiting jobs plus its
 * recent failures.
 */
export class FairHashingQueue<Job> {
  /** In the order of their turns. */
  readonly #networks = new Map<string, Network<Job>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(job: Job, { network, failures }: JobOrigin): void {
    const waiting = this.#networks.get(network) ?? { jobs: [], failures };
    waiting.jobs.push(job);
    waiting.failures = failures;
    this.#networks.set(network, waiting);
    this.#length += 1;
  }

  /** Removes and returns the oldest job of the network whose turn it is. */
  next(): Job | undefined {
    for (const [network, waiting] of this.#networks) {
      this.#networks.delete(network);
      this.#length -= 1;
      const job = waiting.jobs.shift();
      if (waiting.jobs.length > 0) this.#networks.set(network, waiting);
      return job;
    }
    return undefined;
  }

  /**
   * Removes and returns the newest job of the heaviest network if that network is heavier than the network of the new
   * job would be.
   */
  displaceFor({ network, failures }: JobOrigin): Job | undefined {
    const waiting = this.#networks.get(network)?.jobs.length ?? 0;
    return this.#takeHeaviest(waiting + failures + 1);
  }

  /** Removes and returns the newest job of the heaviest network. */
  displaceNewest(): Job | undefined {
    return this.#takeHeaviest(0);
  }

  #takeHeaviest(limit: number): Job | undefined {
    let heaviest: string | undefined;
    let most = limit;
    for (const [network, { jobs, failures }] of this.#networks) {
      if (jobs.length + failures <= most) continue;
      most = jobs.length + failures;
      heaviest = network;
    }
    const waiting = heaviest === undefined ? undefined : this.#networks.get(heaviest);
    if (heaviest === undefined || waiting === undefined) return undefined;
    const job = waiting.jobs.pop();
    if (waiting.jobs.length === 0) this.#networks.delete(heaviest);
    this.#length -= 1;
    return job;
  }
}
