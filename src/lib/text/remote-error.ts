import { codeOrMessage } from "./error-code.ts";

/** The reason that the log gives for a server that does not answer in time. */
export const LATE = "no answer in time";

/** A remote server failed, or its answer cannot be used. The message is for the log, and quotes nothing that was sent or received. */
export class RemoteError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = new.target.name;
  }
}

/** The reason to log: our own words, or the code of a foreign error, since its message may quote the request. */
export function remoteFailure(error: unknown): string {
  if (error instanceof RemoteError) return error.message;
  const late = error instanceof Error && ["AbortError", "TimeoutError"].includes(error.name);
  return late ? LATE : codeOrMessage(error);
}
