import { codeOrMessage } from "../../../lib/text/error-code.ts";

/** A store could not be asked, or gave no answer that can be used. The message is for the log, and holds nothing secret. */
export class StoreUnavailable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "StoreUnavailable";
  }
}

/** The reason that is logged for a store that hangs. */
export const LATE = "no answer in time";

/** The reason to log: our own words, or the code of a foreign error, since its message may quote the request. */
export function reasonOf(error: unknown): string {
  if (error instanceof StoreUnavailable) return error.message;
  const late = error instanceof Error && ["AbortError", "TimeoutError"].includes(error.name);
  return late ? LATE : codeOrMessage(error);
}
