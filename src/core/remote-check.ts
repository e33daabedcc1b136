/** Checks by other servers: who is calling, and whether the caller is allowed. */

/** The `result` of `remote_checks_total`; `cached` if the answer was cached, `stale` if an earlier yes stood in for one. */
export const REMOTE_CHECK_RESULTS = [
  "allowed",
  "denied",
  "unavailable",
  "cached",
  "stale",
] as const;
export type RemoteCheckResult = (typeof REMOTE_CHECK_RESULTS)[number];

/** A check as the configuration names it. */
export interface RemoteCheckName {
  /** The kind of token check or of authorization server. */
  readonly kind: string;
  readonly name: string;
}

/** A check whose server cannot be asked. Times are in milliseconds since the epoch (wall clock). */
export interface RemoteOutage extends RemoteCheckName {
  readonly since: number;
  /** When it was asked in vain the last time. */
  readonly failedAt: number;
  /** Whether an earlier yes has counted since. */
  readonly stale: boolean;
}

/** Receives the results of one check. */
export interface RemoteCheckObserver {
  /** The answer was cached. */
  cached(): void;
  /** An earlier yes counted, because the server could not be asked. */
  stale(): void;
  /** The server has answered. */
  answered(allowed: boolean, seconds: number): void;
  /** The server could not be asked, or gave no usable answer. The reason quotes neither the question nor the answer. */
  failed(reason: string, seconds: number): void;
}

/** How long an earlier yes counts before the server is asked again while it is away, in milliseconds. */
export const STALE_STEP_MS = 1_000;

/** A test query to the server of a check, for `sallyport doctor`. */
export interface RemoteProbe {
  /** The server's URL. */
  readonly url: string;
  /** What to look at if the server does not answer. */
  readonly hint: string;
  /** Sends a query that the server must answer with no. @throws RemoteError, or the system's error. */
  ask(signal: AbortSignal): Promise<unknown>;
}

/** Makes a test query of a question. @param open opens the check, which is closed after the answer. */
export function remoteProbe(
  about: Pick<RemoteProbe, "url" | "hint">,
  open: () => { ask(question: string, signal: AbortSignal): Promise<unknown>; close(): void },
  question: string,
): RemoteProbe {
  const ask = async (signal: AbortSignal): Promise<unknown> => {
    const check = open();
    try {
      return await check.ask(question, signal);
    } finally {
      check.close();
    }
  };
  return { ...about, ask };
}

/** What to look at if the Kubernetes API server does not answer a review. */
export const API_SERVER_HINT =
  "does tokenFile contain a token of the ServiceAccount, and does that have the ClusterRole system:auth-delegator?";
