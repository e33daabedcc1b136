import { join } from "node:path";
import { startProgram } from "../../deployment/program.ts";

export interface WitnessOptions {
  readonly port: number;
  readonly adminPort: number;
  /** The port of a server that is not attacked; plain HTTP. */
  readonly calmPort: number;
  /** The authority of the certificate, PEM; undefined for plain HTTP. */
  readonly ca: string | undefined;
  readonly token: string;
  readonly path: string;
}

/** The results of the requests of one kind. */
export interface Seen {
  /** The number of successful requests. */
  readonly answers: number;
  /** How long they took: median, 99th percentile and slowest, each without `ownMs`. */
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly slowestMs: number;
  readonly failed: number;
  /** The first three reasons. */
  readonly failures: readonly string[];
  readonly slowest: Slowest | undefined;
  /** The largest delay of the client itself; see `Slowest`. */
  readonly ownMs: number;
}

/** Details of the slowest answer, in milliseconds. */
export interface Slowest {
  /** How long it may have waited until the client had the CPU to read it. */
  readonly ownMs: number;
  /** From the request until the connection was open, including the TLS handshake; 0 for a keep-alive connection. */
  readonly connectedMs: number;
  /** When it was requested, counted from the first request. */
  readonly afterMs: number;
}

/** The results over keep-alive and new connections, of the kubelet's probe, and of a server that is not attacked. */
export interface Testimony {
  readonly kept: Seen;
  readonly fresh: Seen;
  readonly livez: Seen;
  readonly calm: Seen;
}

export interface Witness extends AsyncDisposable {
  /** Stops sending requests; resolves with the results since the start. */
  hear(): Promise<Testimony>;
}

const SCRIPT = join(import.meta.dirname, "main.ts");

/** Starts a witness; resolves when requests of all kinds have been answered. Rejects if one was not. */
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
  // No one may be waiting for it when the witness ends.
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
