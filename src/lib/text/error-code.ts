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
