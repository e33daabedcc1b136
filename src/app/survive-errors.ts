import type { Log } from "../core/log.ts";

/**
 * Logs errors that nothing has caught, instead of ending this thread. Call it once the thread serves clients; a start that
 * fails must end.
 *
 * Node ends the process by default, because it cannot know what the error has left half done. Here that is less than an
 * end would destroy. Nothing is forwarded without a permit and nothing is accepted without an identity, and only
 * completed checks create these, so an interrupted check opens nothing. The request that caused the error ends at its
 * time limits. If the process ended, it would cut off all other requests and WebSockets, and a client that can repeat
 * such a request could keep the proxy down.
 */
export function surviveErrors(log: Pick<Log, "error">): void {
  const survive = (error: unknown): void => log.error("uncaught error", { error });
  process.on("uncaughtException", survive).on("unhandledRejection", survive);
}
