/**
 * Describes an error by its system code, else by the code of its cause (`fetch failed` alone says nothing), else by its
 * message.
 */
export function codeOrMessage(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.cause instanceof Error ? codeOrMessage(error.cause) : error.message;
}
