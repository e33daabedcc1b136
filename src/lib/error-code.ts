/**
 * What to tell of an error: the system's code where there is one, its own or its cause's (`fetch failed` alone says nothing),
 * else its message.
 */
export function codeOrMessage(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.cause instanceof Error ? codeOrMessage(error.cause) : error.message;
}
