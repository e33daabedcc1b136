/** The reason that the log gives for a server that does not answer in time. */
export const LATE = "no answer in time";

/** A remote server failed, or its answer cannot be used. The message is for the log, and quotes nothing that was sent or received. */
export class RemoteError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = new.target.name;
  }
}

/** A question that was never put: of the server that it was for, nothing is known. */
export class NotAskedError extends RemoteError {}

/** The reason to log: our own words, or the code of a foreign error, since its message may quote the request. */
export function remoteFailure(error: unknown): string {
  if (error instanceof RemoteError) return error.message;
  const late = error instanceof Error && ["AbortError", "TimeoutError"].includes(error.name);
  return late ? LATE : codeOrMessage(error);
}

/** Returns the code of an error of the system, Node or OpenSSL: `ENOENT`, `ERR_TLS_…`; undefined if it has none. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : undefined;
}

/**
 * Describes an error by its system code, else by the code of its cause (`fetch failed` alone says nothing), else by its
 * message.
 */
export function codeOrMessage(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const code = systemCode(error);
  if (code !== undefined) return code;
  return error.cause instanceof Error ? codeOrMessage(error.cause) : error.message;
}
