import { type Child, startChild } from "../machine/children.ts";

/** Requests at a fixed rate (an open loop: a slow answer does not hold the next request back). */
export interface Paced {
  readonly port: number;
  readonly ca: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  /** Sent in turn; none for requests without. */
  readonly tokens: readonly string[];
  /** Whether each gets a connection of its own, with a full handshake. */
  readonly newConnections?: boolean;
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

/** Requests that are on their way. */
interface Sending {
  /** Rejects unless every answer has had the status that was wanted. */
  readonly result: Promise<PacedResult>;
}

/** Sends from a program of its own, so that two loads do not hold each other up. Resolves when it is warm and counts. */
export async function startPaced(options: Paced, status: number): Promise<Sending> {
  const child = startChild(process.execPath, [CLIENT, JSON.stringify(options)]);
  try {
    await child.read((output) => (output.includes("warm") ? true : undefined));
  } catch (error) {
    await child.stop();
    throw error;
  }
  const result = resultOf(child, options, status);
  // Whoever started it looks at it later.
  result.catch(() => undefined);
  return { result };
}

async function resultOf(
  child: Child,
  { path, seconds }: Paced,
  status: number,
): Promise<PacedResult> {
  await using ending = child;
  const text = await ending.read(
    (output) => /^result (.*)$/m.exec(output)?.[1],
    (seconds + 30) * 1000,
  );
  const result: PacedResult = JSON.parse(text);
  const others = Object.entries(result.statuses).filter(([name]) => name !== String(status));
  if (others.length > 0) {
    const told = others.map(([name, count]) => `${count} times ${name}`).join(", ");
    throw new Error(`wanted nothing but ${status} from ${path}, got ${told}`);
  }
  return result;
}
