import { join } from "node:path";
import { startProgram } from "../../deployment/program.ts";

export interface WitnessOptions {
  readonly port: number;
  readonly adminPort: number;
  /** Of a server that nobody attacks; plain HTTP. */
  readonly calmPort: number;
  /** The authority of the certificate, PEM; undefined for plain HTTP. */
  readonly ca: string | undefined;
  readonly token: string;
  readonly path: string;
}

/** What came of the questions of one kind. */
export interface Seen {
  /** Right ones. */
  readonly answers: number;
  /** How long they took: the median, the 99th percentile and the slowest; without `ownMs` of each. */
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
  readonly failed: number;
  /** Why, the first three. */
  readonly failures: readonly string[];
  readonly slowest: Slowest | undefined;
  /** The greatest delay of the client itself; see `Slowest`. */
  readonly ownMs: number;
}

/** What is known of the slowest answer, in milliseconds. */
export interface Slowest {
  /** How long it may have been there before the client had the processor to take it. */
  readonly ownMs: number;
  /** From the question until there was a connection, over TLS with its handshake; 0 over one that was kept. */
  readonly connectedMs: number;
  /** When it was asked, since all questions began. */
  readonly afterMs: number;
}

/** The well-behaved client over kept and over new connections, the kubelet's probe, and a server that nobody attacks. */
export interface Testimony {
  readonly kept: Seen;
  readonly fresh: Seen;
  readonly livez: Seen;
  readonly calm: Seen;
}

export interface Witness extends AsyncDisposable {
  /** Ends the questions; resolves with what has been seen since the start. */
  hear(): Promise<Testimony>;
}

const SCRIPT = join(import.meta.dirname, "main.ts");

/** Resolves when all kinds of questions have been answered some times. Rejects when one was not. */
export async function startWitness(options: WitnessOptions): Promise<Witness> {
  const asking = Promise.withResolvers<void>();
  const heard = Promise.withResolvers<Testimony>();
  const complaints: string[] = [];
  const program = startProgram({
    script: SCRIPT,
    args: [JSON.stringify(options)],
    onLine(line) {
      if (line === "asking") asking.resolve();
      else heard.resolve(testimonyFrom(line));
    },
    onErrorLine: (line) => void complaints.push(line),
    messages: false,
  });
  void program.ended.then(() => {
    const error = new Error(`the witness ended: ${complaints.slice(0, 8).join("\n")}`);
    asking.reject(error);
    heard.reject(error);
  });
  // Nobody may be waiting for it when the witness ends.
  heard.promise.catch(() => undefined);
  await asking.promise;
  return {
    hear() {
      program.child.kill("SIGTERM");
      return heard.promise;
    },
    [Symbol.asyncDispose]: () => program.kill(),
  };
}

function testimonyFrom(line: string): Testimony {
  const testimony: Testimony = JSON.parse(line);
  return testimony;
}
