import { needProgram } from "../../bench/machine/programs.ts";
import { startProgram } from "../deployment/program.ts";

/** One step of every connection; see crowd.py. */
export type Step =
  | { readonly send: string; readonly times?: number | readonly number[] }
  | { readonly await: string }
  | { readonly pause: number };

/** What a crowd of clients does; see crowd.py, which documents each member. */
export interface Order {
  readonly port: number;
  readonly tls: boolean;
  readonly addresses: readonly string[];
  readonly connections: number;
  readonly steps: readonly Step[];
  readonly read?: "nothing" | "all";
  readonly receiveBuffer?: number;
  readonly segment?: number;
  readonly handshake?: boolean;
  readonly reconnect?: boolean;
}

/** What a crowd has done so far. Bytes are those of HTTP, inside TLS. */
export interface Counts {
  readonly opened: number;
  readonly refused: number;
  readonly open: number;
  /** Connections that have completed all their steps. */
  readonly finished: number;
  readonly sent: number;
  readonly received: number;
}

export interface Crowd extends AsyncDisposable {
  /** The counts, at most a fifth of a second old. */
  readonly counts: Counts;
}

const SCRIPT = `${import.meta.dirname}/crowd.py`;
const NOTHING: Counts = { opened: 0, refused: 0, open: 0, finished: 0, sent: 0, received: 0 };

/** Starts a crowd in a separate process, which runs until it is disposed of. Throws if Python 3 is not installed. */
export function startCrowd(order: Order): Crowd {
  const full = {
    host: "127.0.0.1",
    read: "nothing",
    receiveBuffer: 0,
    segment: 0,
    handshake: true,
    reconnect: false,
    ...order,
  };
  let counts = NOTHING;
  const program = startProgram({
    command: needProgram("python3"),
    script: SCRIPT,
    args: [],
    input: `${JSON.stringify(full)}\n`,
    onLine: (line) => (counts = readCounts(line)),
    onErrorLine: (line) => console.error(`crowd: ${line}`),
    messages: false,
  });
  return {
    get counts() {
      return counts;
    },
    [Symbol.asyncDispose]: () => program.kill(),
  };
}

function readCounts(line: string): Counts {
  const counts: Counts = JSON.parse(line);
  return counts;
}

/** Returns the sum of the counts of several crowds. */
export function together(crowds: readonly Crowd[]): Counts {
  const sum = (field: keyof Counts): number =>
    crowds.reduce((total, { counts }) => total + counts[field], 0);
  return {
    opened: sum("opened"),
    refused: sum("refused"),
    open: sum("open"),
    finished: sum("finished"),
    sent: sum("sent"),
    received: sum("received"),
  };
}
