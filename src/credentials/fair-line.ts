/** Who joins a line. */
export interface Joining {
  readonly network: string;
  /** How often the network has failed lately. */
  readonly failures: number;
}

interface Network<Job> {
  /** Oldest first, never empty. */
  readonly jobs: Job[];
  failures: number;
}

/**
 * A line in which networks take turns, however much each of them brings: whoever is alone waits for one job of every
 * other network at most. A network weighs as much as it has waiting and has failed lately.
 */
export class FairLine<Job> {
  /** The next to have its turn comes first. */
  readonly #networks = new Map<string, Network<Job>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  join(job: Job, { network, failures }: Joining): void {
    const waiting = this.#networks.get(network) ?? { jobs: [], failures };
    waiting.jobs.push(job);
    waiting.failures = failures;
    this.#networks.set(network, waiting);
    this.#length += 1;
  }

  /** Takes out the oldest job of the network whose turn it is. */
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

  /** Takes out the newest job of the heaviest network, if that is heavier than the one that joins will then be. */
  giveWayTo({ network, failures }: Joining): Job | undefined {
    const waiting = this.#networks.get(network)?.jobs.length ?? 0;
    return this.#takeHeaviest(waiting + failures + 1);
  }

  /** Takes out the newest job of the heaviest network. */
  giveWay(): Job | undefined {
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
