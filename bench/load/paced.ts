import { run } from "../machine/children.ts";

/** Requests at a fixed rate (an open loop: a slow answer does not hold the next request back). */
export interface Paced {
  readonly port: number;
  readonly ca: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  /** Sent in turn; none for requests without. */
  readonly tokens: readonly string[];
  readonly perSecond: number;
  readonly seconds: number;
}

export interface PacedResult {
  /** How many answers by status; "failed" where there was none. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const CLIENT = `${import.meta.dirname}/../clients/paced.ts`;

/** Sends from a program of its own, so that two loads do not hold each other up. Rejects unless every answer is `status`. */
export async function paced(options: Paced, status: number): Promise<PacedResult> {
  const output = await run(
    process.execPath,
    [CLIENT, JSON.stringify(options)],
    (options.seconds + 30) * 1000,
  );
  const result: PacedResult = JSON.parse(output);
  const others = Object.entries(result.statuses).filter(([name]) => name !== String(status));
  if (others.length > 0) {
    const told = others.map(([name, count]) => `${count} times ${name}`).join(", ");
    throw new Error(`wanted nothing but ${status} from ${options.path}, got ${told}`);
  }
  return result;
}
