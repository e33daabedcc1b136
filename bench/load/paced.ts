import { type Child, startChild } from "../machine/children.ts";

/** Requests at a fixed rate (an open loop: a slow answer does not delay the next request). */
export interface Paced {
  readonly port: number;
  readonly ca: string;
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  /** Sent in turn; empty for requests without a token. */
  readonly tokens: readonly string[];
  /** Whether each request has another wrong signature, which costs a verification: refusals are remembered. */
  readonly forged?: boolean;
  /** Default: 64. */
  readonly connections?: number;
  /** Whether each request gets a new connection with a full handshake. */
  readonly newConnections?: boolean;
  readonly perSecond: number;
  readonly seconds: number;
}

export interface PacedResult {
  /** The number of answers by status; "failed" counts requests without an answer. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const CLIENT = `${import.meta.dirname}/../clients/paced.ts`;

/** A load that is running. */
interface Sending {
  /** Rejects unless every answer had the expected status. */
  readonly result: Promise<PacedResult>;
}

/** Sends from a separate program, so that two loads do not delay each other. Resolves when it is warm and counts. */
export async function startPaced(options: Paced, status: number): Promise<Sending> {
  const child = startChild(process.execPath, [CLIENT, JSON.stringify(options)]);
  try {
    await child.read((output) => (output.includes("warm") ? true : undefined));
  } catch (error) {
    await child.stop();
    throw error;
  }
  const result = resultOf(child, options, status);
  // The caller handles a rejection later.
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
    const unexpected = others.map(([name, count]) => `${count} times ${name}`).join(", ");
    throw new Error(`expected only ${status} from ${path}, got ${unexpected}`);
  }
  return result;
}
